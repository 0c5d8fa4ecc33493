// Fits a document into a number of characters. Sections are cut at whole items and count the omitted items.

export interface Section {
  /** Printed before the first item; a section without items is left out. */
  readonly title: string;
  /** Each item from its longest form to its shortest. The first form that fits is used. */
  readonly items: readonly (readonly string[])[];
  /** Separator between items. */
  readonly separator: string;
  /** Text for the number of omitted items. */
  readonly more: (count: number) => string;
}

const between = '\n\n';

/**
 * Returns the head, as many items of the sections as fit, and the foot. The result has at most `budget` UTF-16 units, unless the head, the
 * foot and one "more" line per section alone exceed it; those are never cut.
 */
export function fitSections(head: string, sections: readonly Section[], foot: string, budget: number): string {
  const shown = sections.filter((section) => section.items.length > 0);
  const reserves = shown.map((section) => section.title.length + section.more(section.items.length).length + 3 * between.length);
  let rest = budget - head.length - foot.length - 2 * between.length - reserves.reduce((sum, one) => sum + one, 0);
  const parts = shown.map((section) => {
    const fitted = fitItems(section, rest);
    rest -= fitted.cost;
    return fitted.text;
  });
  return [head, ...parts, foot].filter((part) => part !== '').join(between);
}

function fitItems(section: Section, room: number): { readonly text: string; readonly cost: number } {
  const taken: string[] = [];
  let cost = 0;
  for (const forms of section.items) {
    const form = forms.find((text) => text.length + section.separator.length <= room - cost);
    if (form === undefined) break;
    taken.push(form);
    cost += form.length + section.separator.length;
  }
  const left = section.items.length - taken.length;
  const body = taken.join(section.separator);
  const text = [section.title, body, left > 0 ? section.more(left) : ''].filter((part) => part !== '').join(between);
  return { text, cost };
}
