/** The `desired` message of a node, with all objects, or with references to those that the node holds. */
import { createHash } from 'node:crypto'
import type { ContentNames, DesiredMessage, DesiredReferences } from '../../../api/topics.ts'
import { eachInTurns } from '../../../daemon/limits/turn-limit.ts'
import type { DesiredContent } from './desired-content.ts'

export type MessageHead = Pick<DesiredMessage, 'epoch' | 'version' | 'store'>

export type NamedContents = {
  readonly names: ContentNames
  /** By name. */
  readonly contents: ReadonlyMap<string, object>
}

/**
 * The same name is the same content, whichever controller gives it. The objects of the store are never changed in place: each is hashed once.
 * Many of them, or large ones, take several turns of the event loop.
 */
export async function namedContents({
  pods,
  data: { configMaps = [], secrets = [] },
}: DesiredContent): Promise<NamedContents> {
  const contents = new Map<string, object>()
  const nameAll = async (objects: Iterable<object>) => {
    const names: string[] = []
    await eachInTurns(objects, (one) => {
      const name = contentName(one)
      contents.set(name, one)
      names.push(name)
    })
    return names
  }
  const names = {
    pods: await nameAll([...pods.values()].map(({ pod }) => pod)),
    configMaps: await nameAll(configMaps),
    secrets: await nameAll(secrets),
  }
  return { names, contents }
}

/** For each agent, also one that does not read references. */
export function wholeMessage(head: MessageHead, { pods, data }: DesiredContent, names: ContentNames): DesiredMessage {
  return { ...head, pods: [...pods.values()].map(({ pod }) => pod), ...data, names }
}

/** `sent`: the names of the contents that the message has. */
export function referencesMessage(
  head: MessageHead,
  { data: { configMaps: _, secrets: __, ...data } }: DesiredContent,
  { names, contents }: NamedContents,
  sent: readonly string[],
): DesiredReferences {
  return { ...head, ...data, names, contents: Object.fromEntries(sent.map((name) => [name, contents.get(name)])) }
}

const known = new WeakMap<object, string>()

function contentName(content: object): string {
  const name =
    known.get(content) ?? createHash('sha256').update(JSON.stringify(content)).digest('base64url').slice(0, 22)
  known.set(content, name)
  return name
}
