/** The events of a simulation's file: when each begins and ends, and which machines it is about. */
import { forbidden, invalid, type Problem, required } from '../../api/problem.ts'
import { type Described, object, oneOf, optional, text } from '../../api/schema.ts'
import { formatDuration } from '../../daemon/duration.ts'
import type { MachineShape } from '../world/machine-shape.ts'
import { zoneLabel } from './file-machines.ts'
import { type Times, timesIn } from './file-times.ts'

export const eventKinds = [
  'networkOff',
  'powerOff',
  'reboot',
  'diskFull',
  'drain',
  'controllerOff',
  'controllerLost',
] as const

export const StoryEventSchema = object({
  event: oneOf(...eventKinds),
  from: text,
  to: optional(text),
  machine: optional(text),
  zone: optional(text),
  /** When the backup was made that is restored after `controllerLost`. */
  backup: optional(text),
})
export type FileEvent = Described<typeof StoryEventSchema>

export type EventKind = FileEvent['event']

export type StoryEvent = {
  readonly kind: EventKind
  readonly fromMs: number
  /** undefined: it does not end. */
  readonly toMs: number | undefined
  /** By name; none of an event of the controller. */
  readonly machines: readonly string[]
  /** `machine pi-1`, `zone garden`, `the controller` */
  readonly about: string
  /** When the backup is made that is restored at its end. */
  readonly backupMs: number | undefined
}

const rebootMs = 90_000
const endsByItself: ReadonlySet<EventKind> = new Set(['drain', 'reboot'])
const ofController: ReadonlySet<EventKind> = new Set(['controllerOff', 'controllerLost'])
/** Events of one group exclude each other at one machine. */
const groups: { readonly [kind in EventKind]: string } = {
  networkOff: 'network',
  powerOff: 'power',
  reboot: 'power',
  diskFull: 'disk',
  drain: 'drain',
  controllerOff: 'controller',
  controllerLost: 'controller',
}

/** Adds what is wrong to `problems`. */
export function storyOfFile(
  events: readonly FileEvent[],
  machines: readonly MachineShape[],
  problems: Problem[],
): readonly StoryEvent[] {
  const times = timesIn(problems)
  const story = events.map((event, i) => eventOf(event, `story[${i}]`, machines, { times, problems }))
  for (const [i, event] of story.entries()) {
    const other = story.findIndex((before, at) => at < i && overlap(before, event))
    if (other >= 0)
      problems.push(
        invalid(`story[${i}].from`, formatDuration(event.fromMs), `story[${other}] is not over then: begin it later`),
      )
  }
  return story
}

type Reading = { readonly times: Times; readonly problems: Problem[] }

function eventOf(event: FileEvent, field: string, machines: readonly MachineShape[], reading: Reading): StoryEvent {
  const { event: kind, from, to, backup } = event
  const { times, problems } = reading
  const fromMs = times.moment(`${field}.from`, from)
  const givenMs = to === undefined ? undefined : times.moment(`${field}.to`, to)
  if (givenMs === undefined && !endsByItself.has(kind))
    problems.push(required(`${field}.to`, `${kind} lasts until then`))
  if (to !== undefined && givenMs !== undefined && givenMs <= fromMs)
    problems.push(invalid(`${field}.to`, to, 'must be later than `from`'))
  const toMs = givenMs ?? (kind === 'reboot' ? fromMs + rebootMs : undefined)
  const isLost = kind === 'controllerLost'
  if (backup !== undefined && !isLost)
    problems.push(forbidden(`${field}.backup`, 'only controllerLost restores a backup'))
  const backupMs = isLost ? times.moment(`${field}.backup`, backup ?? '0s') : undefined
  if (backupMs !== undefined && backupMs > fromMs)
    problems.push(invalid(`${field}.backup`, backup, 'must not be later than `from`'))
  return { kind, fromMs, toMs, backupMs, ...targetOf(event, field, machines, problems) }
}

function targetOf(
  { event: kind, machine, zone }: FileEvent,
  field: string,
  machines: readonly MachineShape[],
  problems: Problem[],
): Pick<StoryEvent, 'machines' | 'about'> {
  const none = { machines: [], about: 'the controller' }
  if (ofController.has(kind)) {
    for (const name of ['machine', 'zone'] as const) {
      if ({ machine, zone }[name] !== undefined)
        problems.push(forbidden(`${field}.${name}`, `${kind} is about the controller`))
    }
    return none
  }
  if (machine !== undefined && zone !== undefined) {
    problems.push(forbidden(`${field}.zone`, 'give a machine or a zone, not both'))
    return none
  }
  if (machine !== undefined) {
    const names = machines.map(({ name }) => name)
    if (!names.includes(machine)) problems.push(invalid(`${field}.machine`, machine, `use one of ${listOf(names)}`))
    return { machines: [machine], about: `machine ${machine}` }
  }
  if (zone === undefined) {
    problems.push(required(`${field}.machine`, `give the machine or the zone of ${kind}`))
    return none
  }
  const inZone = machines.filter(({ labels }) => labels[zoneLabel] === zone).map(({ name }) => name)
  if (inZone.length === 0) {
    const zones = [...new Set(machines.flatMap(({ labels }) => labels[zoneLabel] ?? []))]
    const remedy = zones.length === 0 ? 'no machine has a zone: give machines one' : `use one of ${listOf(zones)}`
    problems.push(invalid(`${field}.zone`, zone, remedy))
  }
  return { machines: inZone, about: `zone ${zone}` }
}

const mostNames = 20

function listOf(names: readonly string[]): string {
  const more = names.length - mostNames
  return `${names.slice(0, mostNames).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function overlap(a: StoryEvent, b: StoryEvent): boolean {
  if (groups[a.kind] !== groups[b.kind]) return false
  const isShared = ofController.has(a.kind) || a.machines.some((name) => b.machines.includes(name))
  const endOf = ({ toMs }: StoryEvent) => toMs ?? Number.POSITIVE_INFINITY
  return isShared && a.fromMs < endOf(b) && b.fromMs < endOf(a)
}
