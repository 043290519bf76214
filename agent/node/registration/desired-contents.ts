/**
 * Listener: replaces the references in the desired state by the contents that this node holds, from the last message or from its
 * checkpoint. A message that refers to others is not used; the node reports what it holds, and receives the rest.
 */
import type { Content, ContentsByName, Desired, ReceivedDesired } from '../../../api/desired.ts'
import type { Log } from '../../../daemon/log.ts'

export type DesiredContentsNeeds = {
  /** The last desired pods of this node, once the checkpoint is read; undefined: there is none. */
  readonly remembered: () => Promise<{ readonly desired: Desired } | undefined>
  /** Called with each message whose contents are all here. */
  readonly desired: (message: Desired) => void
  /** Publishes `heldContents` to the controller. */
  readonly report: () => void
  readonly log: Log
}

export interface DesiredContents {
  /** Takes a message of the controller. Those from before the checkpoint is read wait for it. */
  desired(message: ReceivedDesired): void
  /** The names of the contents that are here; undefined while the checkpoint is not read. */
  heldContents(): readonly string[] | undefined
}

export function desiredContents({ remembered, desired, report, log }: DesiredContentsNeeds): DesiredContents {
  let held: ContentsByName | undefined
  const early: ReceivedDesired[] = []

  /** Returns whether its contents are here. */
  const take = (message: ReceivedDesired, known: ContentsByName): boolean => {
    const whole = withContents(message, known)
    if (whole === undefined) return false
    // A controller that waits for the checkpoint sends no contents, and refers to those of before afterwards.
    if (!whole.awaitsCheckpoint) held = contentsOf(whole)
    desired(whole)
    return true
  }

  const request = ({ epoch, version }: ReceivedDesired) => {
    log.info('The controller refers to contents that are not here; they are requested', { epoch, version })
    report()
  }

  const checkpoint = async () => {
    try {
      return contentsOf((await remembered())?.desired)
    } catch (error) {
      log.error('The contents of the checkpoint are not used', { error })
      return new Map<string, Content>()
    }
  }
  const load = async () => {
    held = new Map([...(await checkpoint()), ...(held ?? [])])
    for (const message of early.splice(0)) take(message, held)
    report()
  }
  void load().catch((error: unknown) => log.error('Desired state not used', { error }))

  return {
    desired(message) {
      // Pods that a whole message has do not wait for the checkpoint here: the pod manager decides what of it may be used.
      if (held === undefined && message.contents !== undefined) early.push(message)
      else if (!take(message, held ?? new Map())) request(message)
    },
    heldContents: () => held && [...held.keys()],
  }
}

/** The contents that have a name. */
export function contentsOf(desired: Desired | undefined): ContentsByName {
  if (desired === undefined) return new Map()
  const { names, pods, configMaps = [], secrets = [], misread = [] } = desired
  return new Map<string, Content>([
    ...named(names?.pods, pods, (object) => ({ kind: 'Pod', object })),
    ...named(names?.configMaps, configMaps, (object) => ({ kind: 'ConfigMap', object })),
    ...named(names?.secrets, secrets, (object) => ({ kind: 'Secret', object })),
    ...misread.flatMap((one): [string, Content][] =>
      one.content === undefined ? [] : [[one.content, { kind: 'misread', misread: one }]],
    ),
  ])
}

function named<T>(names: readonly string[] = [], items: readonly T[], content: (item: T) => Content) {
  return names.flatMap((name, index): [string, Content][] => {
    const item = items[index]
    return item === undefined ? [] : [[name, content(item)]]
  })
}

/** undefined: a content is missing. */
export function withContents({ contents, ...message }: ReceivedDesired, held: ContentsByName): Desired | undefined {
  const { names } = message
  if (contents === undefined || names === undefined) return message
  const all = [...names.pods, ...(names.configMaps ?? []), ...(names.secrets ?? [])]
  const found = new Map<string, Content>()
  for (const name of all) {
    const content = contents.get(name) ?? held.get(name)
    if (content === undefined) return undefined
    found.set(name, content)
  }
  const entries = [...found]
  const pods = entries.flatMap(([name, one]) => (one.kind === 'Pod' ? [{ name, object: one.object }] : []))
  const configMaps = entries.flatMap(([name, one]) => (one.kind === 'ConfigMap' ? [{ name, object: one.object }] : []))
  const secrets = entries.flatMap(([name, one]) => (one.kind === 'Secret' ? [{ name, object: one.object }] : []))
  const misread = entries.flatMap(([, one]) => (one.kind === 'misread' ? [one.misread] : []))
  return {
    ...message,
    pods: objectsOf(pods),
    ...(configMaps.length > 0 && { configMaps: objectsOf(configMaps) }),
    ...(secrets.length > 0 && { secrets: objectsOf(secrets) }),
    names: { pods: namesOf(pods), configMaps: namesOf(configMaps), secrets: namesOf(secrets) },
    ...(misread.length > 0 && { misread }),
  }
}

function objectsOf<T>(items: readonly { readonly object: T }[]): readonly T[] {
  return items.map(({ object }) => object)
}

function namesOf(items: readonly { readonly name: string }[]): readonly string[] {
  return items.map(({ name }) => name)
}
