/** The kinds that are served now: the built-in ones, and those that CustomResourceDefinitions define. */
import { setMaxListeners } from 'node:events'
import { apiVersionOf } from '../../../../api/resources.ts'
import { hasCondition } from '../../../../api/structural/definition-conditions.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import type { StoredObject } from '../../../store/store.ts'
import type { KindRegistry, KindStrategy } from '../../handlers/strategy.ts'
import { customKind } from './custom-kind.ts'

type StoredDefinition = StoredObject<'customresourcedefinitions'>

export interface LiveKinds extends KindRegistry {
  /** Called before each look at the kinds: `catchUp` reports the changes that the store has made until now. */
  follow(catchUp: () => void): void
  /** Serves what a definition defines from now on; undefined: it is gone. */
  change(name: string, definition: StoredDefinition | undefined): void
  /** Called after each change of the kinds. Returns how to stop that. */
  onChange(listener: () => void): () => void
}

type Kinds = {
  readonly definition: StoredDefinition
  readonly ending: AbortController
  /** The storage version, whose id all others share. */
  readonly stored: KindStrategy | undefined
  readonly served: readonly KindStrategy[]
}

/** A kind stays as it is while a request uses it: a change of its definition makes another one. */
export function liveKinds(builtIn: KindRegistry): LiveKinds {
  const definitions = new Map<string, Kinds>()
  const listeners = new Set<() => void>()
  let present: KindRegistry | undefined
  let catchUp = () => {}
  let isCatchingUp = false
  const registry = () => {
    if (!isCatchingUp) {
      isCatchingUp = true
      try {
        catchUp()
      } finally {
        isCatchingUp = false
      }
    }
    present ??= registryOf(builtIn, [...definitions.values()])
    return present
  }
  return {
    get all() {
      return registry().all
    },
    get served() {
      return registry().served
    },
    get: (id) => builtIn.get(id) ?? registry().get(id),
    at: (group, version, plural) => registry().at(group, version, plural),
    ofKind: (apiVersion, kind) => registry().ofKind(apiVersion, kind),
    follow(given) {
      catchUp = given
    },
    change(name, definition) {
      const before = definitions.get(name)
      const isServed = definition !== undefined && hasCondition(definition, 'Established')
      const after = isServed ? kindsOf(definition, before, builtIn) : undefined
      if (after === before) return
      if (after === undefined) definitions.delete(name)
      else definitions.set(name, after)
      present = undefined
      if (before !== undefined && before.ending !== after?.ending) before.ending.abort('The kind is defined otherwise')
      for (const listener of listeners) listener()
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** The same kinds where nothing changes for clients. Watches of a definition that is only being deleted go on. */
function kindsOf(definition: StoredDefinition, before: Kinds | undefined, builtIn: KindRegistry): Kinds {
  const isSame = before !== undefined && isSameKind(before.definition, definition)
  const wasTerminating = before?.definition.metadata.deletionTimestamp !== undefined
  if (isSame && wasTerminating === (definition.metadata.deletionTimestamp !== undefined)) return before
  const ending = isSame ? before.ending : new AbortController()
  setMaxListeners(0, ending.signal) // each watch listens
  const versions = definition.spec.versions.map((version) => ({
    version,
    kind: customKind(definition, version, ending.signal),
  }))
  // A built-in kind keeps its path.
  const own = versions.filter(
    ({ kind }) =>
      builtIn.at(kind.group, kind.version, kind.name) === undefined &&
      builtIn.ofKind(apiVersionOf(kind), kind.kind) === undefined,
  )
  return {
    definition,
    ending,
    stored: own.find(({ version }) => version.storage)?.kind,
    served: own.filter(({ version }) => version.served).map(({ kind }) => kind),
  }
}

function isSameKind(before: StoredDefinition, after: StoredDefinition): boolean {
  const isSameObject = before.metadata.uid === after.metadata.uid
  const hasSameSpec = before.metadata.generation === after.metadata.generation
  return isSameObject && hasSameSpec && equalJSON(before.status?.acceptedNames, after.status?.acceptedNames)
}

function registryOf(builtIn: KindRegistry, definitions: readonly Kinds[]): KindRegistry {
  const stored = definitions.flatMap(({ stored: kind }) => kind ?? [])
  const served = definitions.flatMap(({ served: kinds }) => kinds)
  const ids = new Map(stored.map((kind) => [kind.id as string, kind]))
  const paths = new Map(served.map((kind) => [`${kind.group}/${kind.version}/${kind.name}`, kind]))
  const kinds = new Map(served.map((kind) => [`${apiVersionOf(kind)} ${kind.kind}`, kind]))
  return {
    all: [...builtIn.all, ...stored],
    served: [...builtIn.served, ...served],
    get: (id) => ids.get(id),
    at: (group, version, plural) => builtIn.at(group, version, plural) ?? paths.get(`${group}/${version}/${plural}`),
    ofKind: (apiVersion, kind) => builtIn.ofKind(apiVersion, kind) ?? kinds.get(`${apiVersion} ${kind}`),
  }
}
