/** Decides what the message of one node has: the policies of its namespaces, and the sets that they need, within the length that nodes read. */

export type NamespacePolicies = {
  readonly namespace: string
  /** JSON of each policy. */
  readonly policies: readonly string[]
  /** Names of the sets that the policies refer to. */
  readonly sets: ReadonlySet<string>
}

/** With the JSON of the sets, by name; `isCut`: without some of them, as the namespace is left out in any case. */
export type NamespaceTexts = Omit<NamespacePolicies, 'sets'> & {
  readonly sets: ReadonlyMap<string, string>
  readonly isCut: boolean
}

/** Policies of one namespace. A node has a rule for each pair of a policy and a pod that it selects. */
export const mostPolicies = 500

/** `pause` is awaited between the sets: to make the text of one may take milliseconds. `most`: characters, of the whole message. */
export async function namespaceTexts(
  { sets, ...own }: NamespacePolicies,
  textOf: (set: string) => string | undefined,
  most: number,
  pause: () => Promise<void>,
): Promise<NamespaceTexts> {
  const texts = new Map<string, string>()
  if (own.policies.length > mostPolicies) return { ...own, sets: texts, isCut: true }
  let length = lengthOf([own.namespace, ...own.policies])
  for (const name of sets) {
    if (length > most) return { ...own, sets: texts, isCut: true }
    const text = textOf(name)
    if (text !== undefined) texts.set(name, text)
    length += lengthOf([text ?? ''])
    await pause()
  }
  return { ...own, sets: texts, isCut: length > most }
}

export type NodePolicies = {
  /** Those with all of their policies. */
  readonly namespaces: readonly string[]
  /** JSON of the lists. */
  readonly policies: readonly string[]
  readonly sets: readonly string[]
  /** Namespaces that do not fit: the node lets none of their pods have a connection. */
  readonly leftOut: readonly string[]
}

/**
 * Whole namespaces are left out, those with the longest texts first: what the users of one namespace write takes nothing from the pods
 * of others. `most`: characters.
 */
export function nodePolicies(all: readonly NamespaceTexts[], most: number): NodePolicies {
  const kept = new Set(all)
  const leftOut: string[] = []
  // A set that several namespaces use counts for each: an upper bound.
  const lengths = new Map(
    all.map((one) => [one, lengthOf([one.namespace, ...one.policies, ...one.sets.values()])] as const),
  )
  let total = [...lengths.values()].reduce((sum, length) => sum + length, 0)
  for (const [one, length] of [...lengths].sort(([a, x], [b, y]) => Number(b.isCut) - Number(a.isCut) || y - x)) {
    if (!one.isCut && total <= most) break
    kept.delete(one)
    leftOut.push(one.namespace)
    total -= length
  }
  const sets = new Map([...kept].flatMap((one) => [...one.sets]))
  return {
    namespaces: [...kept].map(({ namespace }) => namespace),
    policies: [...kept].flatMap(({ policies }) => policies),
    sets: [...sets].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, text]) => text),
    leftOut,
  }
}

/** With quotes and a comma for each. */
function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length + 3, 0)
}
