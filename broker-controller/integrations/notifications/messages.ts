/** A batch of problems → one message for one channel. */
import type { Batch } from './batches.ts'
import type { FleetProblem, ProblemKind } from './problems.ts'

export type Notification = {
  readonly status: 'firing' | 'resolved'
  readonly title: string
  /** Lines. */
  readonly text: string
  /** Problems that it is about. */
  readonly count: number
}

/** What a channel wants to have; undefined: everything. */
export type ChannelSelection = {
  readonly kinds: readonly ProblemKind[] | undefined
  /** Problems of nodes are in no namespace: only `kinds` leaves them out. */
  readonly namespaces: readonly string[] | undefined
}

const mostLines = 20
const mostNames = 10

/** Undefined: the channel wants nothing of it. */
export function messageFor({ firing, resolved }: Batch, selection: ChannelSelection): Notification | undefined {
  const wanted = (problems: readonly FleetProblem[]) => problems.filter((problem) => isWanted(problem, selection))
  const [begun, over] = [wanted(firing), wanted(resolved)]
  if (begun.length + over.length === 0) return undefined
  const lines = [...linesOf(begun), ...linesOf(over).map((text) => `Resolved: ${text}`)]
  const more = lines.length - mostLines
  return {
    status: begun.length > 0 ? 'firing' : 'resolved',
    title: begun.length > 0 ? counted(begun.length, 'problem') : `${counted(over.length, 'problem')} resolved`,
    text: [...lines.slice(0, mostLines), ...(more > 0 ? [`and ${more} more`] : [])].join('\n'),
    count: begun.length + over.length,
  }
}

/** To see that a channel works. */
export const testMessage: Notification = {
  status: 'firing',
  title: 'Test of notifications',
  text: 'This channel of bramble-controller works.',
  count: 0,
}

function isWanted({ kind, namespace }: FleetProblem, { kinds, namespaces }: ChannelSelection): boolean {
  if (kinds !== undefined && !kinds.includes(kind)) return false
  return namespace === '' || namespaces === undefined || namespaces.includes(namespace)
}

/** Nodes that were lost with their link or zone make one line. */
function linesOf(problems: readonly FleetProblem[]): readonly string[] {
  const groups = new Map<string, FleetProblem[]>()
  for (const problem of problems) {
    if (problem.group === undefined) continue
    const members = groups.get(problem.group)
    if (members === undefined) groups.set(problem.group, [problem])
    else members.push(problem)
  }
  const together = [...groups].filter(([, members]) => members.length > 1)
  const grouped = new Set(together.flatMap(([, members]) => members))
  return [
    ...together.map(([group, members]) => `${members.length} nodes of ${group} are not ready: ${namesOf(members)}`),
    ...problems.filter((problem) => !grouped.has(problem)).map(({ text }) => text),
  ]
}

function namesOf(members: readonly FleetProblem[]): string {
  const names = members.map(({ name }) => name).toSorted()
  const more = names.length - mostNames
  return `${names.slice(0, mostNames).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
