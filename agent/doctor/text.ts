/** The report as text: the worst findings first, wrapped to the width of the terminal. */
import type { DoctorReport } from './report.ts'

export type TextSettings = { readonly columns: number; readonly isColoured: boolean }

const order = ['problem', 'warning', 'ok', 'unknown'] as const
const shownAs = { problem: 'PROBLEM', warning: 'warning', ok: 'ok', unknown: 'unknown' } as const
const colours = { problem: '31;1', warning: '33', ok: '32', unknown: '2' } as const
const verdictWidth = 9
const least = 60
const most = 120

export function reportText(report: DoctorReport, { columns, isColoured }: TextSettings): string {
  const width = Math.min(most, Math.max(least, columns))
  const nameWidth = Math.max(...report.findings.map(({ check }) => check.length), 0) + 2
  const indent = verdictWidth + nameWidth
  const paint = (text: string, colour: string) => (isColoured ? `\x1b[${colour}m${text}\x1b[0m` : text)
  const groups = order.map((verdict) =>
    report.findings
      .filter((finding) => finding.verdict === verdict)
      .flatMap(({ check, found, remedy }) => {
        const head = `${paint(shownAs[verdict].padEnd(verdictWidth), colours[verdict])}${check.padEnd(nameWidth)}`
        const lines = wrapped(found, width - indent)
        const advice = remedy === undefined ? [] : wrapped(remedy, width - indent - 3)
        return [
          ...lines.map((line, index) => `${index === 0 ? head : ' '.repeat(indent)}${line}`),
          ...advice.map((line, index) => `${' '.repeat(indent)}${index === 0 ? '-> ' : '   '}${line}`),
        ]
      }),
  )
  const parts = [heading(report, width), ...groups, [...doneLines(report), ...wrapped(summary(report), width)]]
  return `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`
}

function heading({ hostname, machine, agentVersion, root }: DoctorReport, width: number): readonly string[] {
  const where = root === '/' ? '' : `, as saved in ${root}`
  return wrapped(`${hostname}${where}: ${[machine, `bramble-agent ${agentVersion}`].filter(Boolean).join(', ')}`, width)
}

function doneLines({ fixed, restartNeeded }: DoctorReport): readonly string[] {
  const lines = fixed.map(({ what, error }) => (error === undefined ? `Done: ${what}` : `Not done: ${what}: ${error}`))
  return restartNeeded
    ? [...lines, "Restart the machine for this to take effect ('systemctl reboot')", '']
    : lines.length > 0
      ? [...lines, '']
      : []
}

function summary({ summary: { problem, warning, ok, unknown }, findings }: DoctorReport): string {
  const counted = [
    problem > 0 && plural(problem, 'problem'),
    warning > 0 && plural(warning, 'warning'),
    `${ok} ok`,
    unknown > 0 && `${unknown} unknown`,
  ].filter((part) => part !== false)
  const fixes = findings.filter(({ fix }) => fix !== undefined).length
  const offer = fixes === 0 ? '' : ` 'bramble-agent doctor --fix' can fix ${fixes === 1 ? 'one' : fixes} of them.`
  return `${counted.join(', ')}.${offer}`
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}

/** Words longer than a line are not split: they are paths and commands. */
function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = []
  for (const paragraph of text.split('\n')) {
    let line = ''
    for (const word of paragraph.split(' ').filter((one) => one !== '')) {
      if (line !== '' && line.length + 1 + word.length > width) {
        lines.push(line)
        line = word
      } else line = line === '' ? word : `${line} ${word}`
    }
    if (line !== '') lines.push(line)
  }
  return lines
}
