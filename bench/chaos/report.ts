/** The report of all rounds, as a page in Markdown. Pure. */
import type { Fault } from './faults.ts'
import { type Outcome, summaryOf } from './outcome.ts'

export type Report = {
  /** The day, the machine, and how to repeat it. */
  readonly facts: readonly string[]
  readonly rows: readonly { readonly fault: Fault; readonly system: string; readonly outcomes: readonly Outcome[] }[]
}

const columns = [
  ...['fault', 'with', 'rounds', 'all ran again: median; longest', 'not within the round'],
  ...['ended on other machines', 'started on other machines', 'ran twice', 'synced records lost'],
]

const intro = `# Chaos

One fault after the other on machines that boot, and what became of their containers. Each fleet is a machine with the
control plane and three workers, with Debian's Docker on disks that lose what was not flushed. It runs six replicas
without data, and three containers that write and sync records on a volume, one on each worker.

\`scripts/chaos.sh\` makes this page. The machines are containers (systemd-nspawn) of one host: they share its kernel and
its clock, so wrong clocks are not tried here (\`test/machines-clocks.test.ts\` tries them for single programs), and a
boot takes seconds. There is no registry: an image that a node has removed from a full disk is imported again after it.
Compare the rows of one fault with each other, not the times with those of a board.`

const legend = `| column | meaning |
|---|---|
| all ran again | seconds from the begin of the fault until as many containers ran as before, on any machine; 0.0: none was missed |
| not within the round | rounds in which that had not happened after three minutes. With Bramble a full disk has pods evicted, as a kubelet does, and the machine gets pods again when the disk has had space for five minutes; Swarm evicts nothing |
| ended on other machines | containers that ended on a machine without the fault |
| started on other machines | replicas that were started there: with Bramble after five minutes without the machine (\`tolerationSeconds\` 300, as in Kubernetes), which no fault here lasts, or when a full disk has pods evicted |
| ran twice | a container with data ran on two machines at one time |
| synced records lost | what a container had synced on its volume, and did not find there at its next start |`

export function reportText({ facts, rows }: Report): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const table = [
    line(columns),
    `|${columns.map(() => '---').join('|')}|`,
    ...rows.map(({ fault, system, outcomes }) => line([fault.text, system, ...summaryOf(outcomes)])),
  ]
  return [intro, table.join('\n'), legend, facts.map((fact) => `- ${fact}`).join('\n'), '']
    .join('\n\n')
    .replace(/\n+$/, '\n')
}
