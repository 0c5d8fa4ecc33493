// Renders groups as a table, one line per group.
import type { LiveGroup } from '../live/groups.ts';
import { infoText, partText, phaseStyles, podTotals, waveText } from './group-text.ts';
import { ageText, shortDigest } from './plan/plan-text.ts';
import type { TableLook } from './plan/table.ts';
import { alignRows, type Column, type Row } from './plan/table-layout.ts';

interface GroupsTable {
  readonly groups: readonly LiveGroup[];
  readonly nowMs: number;
  /** Shows the column NAMESPACE. */
  readonly hasNamespaces: boolean;
}

/** Returns the table with a final line break. The order is by name, so that two lists can be compared. */
export function renderGroups({ groups, nowMs, hasNamespaces }: GroupsTable, look: TableLook): string {
  const isShort = look.columns !== undefined && look.columns < 110 && !look.isWide;
  const columns: readonly Column[] = [
    ...(hasNamespaces ? [{ title: 'NAMESPACE', align: 'left', isFlexible: true } as const] : []),
    { title: 'NAME', align: 'left', isFlexible: true },
    { title: 'PHASE', align: 'left' },
    { title: 'FOR', align: 'right' },
    { title: 'WAVE', align: 'left', isFlexible: true },
    { title: 'UPDATED', align: 'right' },
    { title: 'READY', align: 'right' },
    { title: 'AS OF', align: 'right' },
    ...(look.isWide
      ? [
          { title: 'DEFINED', align: 'left' } as const,
          { title: 'POLICY', align: 'left' } as const,
          { title: 'LEADER', align: 'left', isFlexible: true } as const,
        ]
      : []),
    { title: 'INFO', align: 'left', isFlexible: true },
  ];
  const rows: Row[] = groups.map(({ decision, from }) => {
    const totals = podTotals(decision);
    return {
      cells: [
        ...(hasNamespaces ? [decision.namespace] : []),
        decision.group,
        decision.phase,
        from === 'here' ? '-' : ageText(decision.phaseSinceMs, nowMs),
        waveText(decision, { isShort }) || '-',
        partText(totals, totals.updated),
        partText(totals, totals.available),
        from === 'here' ? 'now' : ageText(decision.decidedMs, nowMs),
        ...(look.isWide ? [decision.origin ?? '-', shortDigest(decision.policyDigest) || '-', decision.leader ?? '-'] : []),
        infoText(decision, { isShort }),
      ],
    };
  });
  const [header = '', ...lines] = alignRows(columns, [{ cells: columns.map(({ title }) => title) }, ...rows], {
    width: look.isWide ? undefined : look.columns,
    ellipsis: look.glyphs.ellipsis,
  });
  const painted = lines.map((line, index) => paintPhase(line, groups[index], look));
  return `${[look.paint('bold', header), ...painted].join('\n')}\n`;
}

/** Paints the first word that equals the phase. A group named like a phase is painted instead, which does no harm. */
function paintPhase(line: string, group: LiveGroup | undefined, { paint }: TableLook): string {
  if (group === undefined) return line;
  const { phase } = group.decision;
  return line.replace(` ${phase} `, () => ` ${paint(phaseStyles[phase], phase)} `);
}
