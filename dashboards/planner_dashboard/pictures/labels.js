// Labels of what users lose: the largest amounts, and the sum where several would overlap.
// The same rules as planner/reports/loss_labels.py.

const WIDTH_PER_LABEL = 80;
const [MIN_LABELS, MAX_LABELS] = [5, 12];
const LABEL_ENOUGH = 0.9; // of what is lost: labels that follow those with so much of it are not drawn
const LABELS_ALWAYS = 3; // even where fewer have enough
const HALF_HEIGHT = 9.5;
const LABEL_GAP = 5; // between a node's circle and its label
const LABEL_ALL = 0.9995; // share from which labels cover all

// losses: {x, y, radius, amount, text, words}; units: [name, size] ascending; left, right: ends of the picture
function placeLabels(losses, { units, widthOf, taken, left, right }) {
  const sayVerbs = new Set(losses.map((loss) => loss.words)).size > 1;
  const label = (members) => {
    const text = labelText(members, units, sayVerbs);
    const [first] = [...members].sort((a, b) => b.amount - a.amount);
    const half = widthOf(text) / 2;
    const away = first.radius + LABEL_GAP;
    const boxes = [[0, -1], [0, 1], [1, 0], [-1, 0]].map(([dx, dy]) => {
      const x = clamp(first.x + dx * (away + half), left + half + 2, Math.max(right - half - 2, left + half + 2));
      const y = first.y + dy * (away + HALF_HEIGHT);
      return [x - half, y - HALF_HEIGHT, x + half, y + HALF_HEIGHT];
    });
    const box = boxes.find((one) => !taken.some((other) => overlaps(one, other))) ?? boxes[0];
    return { losses: members, text, box, amount: sumOf(members) };
  };
  let labels = [];
  for (const loss of [...losses].sort((a, b) => b.amount - a.amount)) {
    let one = label([loss]);
    for (let hit; (hit = labels.find((other) => overlaps(other.box, one.box))); ) {
      labels = labels.filter((other) => other !== hit);
      one = label([...hit.losses, ...one.losses]);
    }
    labels.push(one);
  }
  return largestLabels(labels, right - left);
}

function largestLabels(labels, width) {
  labels.sort((a, b) => b.amount - a.amount);
  const enough = LABEL_ENOUGH * sumOf(labels);
  const many = labels.filter((_, i) => i < LABELS_ALWAYS || sumOf(labels.slice(0, i)) < enough).length;
  return labels.slice(0, Math.min(many, Math.round(clamp(width / WIDTH_PER_LABEL, MIN_LABELS, MAX_LABELS))));
}

// "1.5 Gbit/s", "12.4 Gbit/s lost (7)": with the number of losses in it
function labelText(losses, units, sayVerbs) {
  const parts = [losses.length === 1 ? losses[0].text : amountText(sumOf(losses), units)];
  if (sayVerbs) parts.push(joinVerbs(losses.map((loss) => loss.words)));
  if (losses.length > 1) parts.push(`(${losses.length})`);
  return parts.join(" ");
}

// The verbs of several losses, each once: "not served or at a lower bitrate".
function joinVerbs(verbs) {
  return [...new Set(verbs.flatMap((words) => words.split(" or ")))].join(" or ");
}

function sumOf(losses) {
  return losses.reduce((sum, loss) => sum + loss.amount, 0);
}

// An amount in the largest unit of which it is at least one.
function amountText(amount, units) {
  const [name, size] = [...units].reverse().find(([, unit]) => amount >= unit) ?? units[0];
  return `${figure(amount / size, 4)} ${name}`.trim();
}

// The share of all losses that labels give.
function coverageText(labels, losses) {
  if (!losses?.total) return "";
  const share = sumOf(labels) / losses.total;
  const covered = share >= LABEL_ALL ? "" : `${Math.round(100 * share)}% of `;
  const brackets = labels.some((label) => label.losses.length > 1) ? ", in brackets the number of places" : "";
  return `labels cover ${covered}the ${losses.totalText} that ${losses.verb}${brackets}`;
}
