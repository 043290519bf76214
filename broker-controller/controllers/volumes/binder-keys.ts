/** Which claims and volumes are to be visited after a change of one, of a class or of a pod. In memory only. */
import { classOfClaim, classOfVolume } from '../../../api/storage/volume-matching.ts'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { keySets } from '../../store/indexes/key-sets.ts'
import { keyText } from '../../store/informer.ts'
import { hasAnnotation, type StoredClaim, selectedNodeOf } from './bind-writes.ts'
import type { StoredVolume } from './volume-index.ts'

export type BinderKey =
  | { readonly kind: 'claim' | 'volume'; readonly key: string }
  /** All claims of a class that have no volume: one visit for many volumes that become free together. */
  | { readonly kind: 'waiting'; readonly key: string }

export interface BinderKeys {
  ofClaim(present: StoredClaim | undefined, previous: StoredClaim | undefined): readonly BinderKey[]
  ofVolume(present: StoredVolume | undefined, previous: StoredVolume | undefined): readonly BinderKey[]
  ofPodsClaim(claim: string): readonly BinderKey[]
  /** The claims whose volume is to be made on this node. */
  ofNode(name: string): readonly BinderKey[]
  /** The keys of the claims of this class that have no volume. '': of no class. */
  waiting(className: string): Iterable<string>
}

export function binderKeys(): BinderKeys {
  /** Claims without a volume, by class. */
  const waiting = keySets()
  /** Claims by the volume that they name. */
  const naming = keySets()
  /** Volumes by the claim that they name. */
  const reserved = keySets()
  /** Claims by the node that was selected for them. */
  const selecting = keySets()

  const claimsOf = (volume: StoredVolume): readonly BinderKey[] => {
    const { claimRef } = volume.spec ?? {}
    const keys = new Set(naming.of(volume.metadata.name))
    if (claimRef !== undefined) keys.add(keyText(claimRef))
    return [...keys].map((key) => ({ kind: 'claim', key }))
  }

  const forget = (claim: StoredClaim, key: string) => {
    waiting.delete(classOfClaim(claim) ?? '', key)
    naming.delete(claim.spec?.volumeName ?? '', key)
    selecting.delete(selectedNodeOf(claim) ?? '', key)
  }
  const remember = (claim: StoredClaim, key: string) => {
    const { volumeName = '' } = claim.spec ?? {}
    const selectedNode = selectedNodeOf(claim)
    if (selectedNode !== undefined) selecting.add(selectedNode, key)
    if (volumeName !== '') naming.add(volumeName, key)
    else if (!hasAnnotation(claim, volumeAnnotations.bindCompleted)) waiting.add(classOfClaim(claim) ?? '', key)
  }

  return {
    waiting: waiting.of,
    ofClaim(present, previous) {
      const key = keyText((present ?? previous)?.metadata ?? {})
      if (previous !== undefined) forget(previous, key)
      if (present !== undefined) remember(present, key)
      const volumes = new Set(volumesConcerned(present, previous, reserved.of(key)))
      return [
        // Also one that is gone: what is remembered of it is forgotten.
        { kind: 'claim', key },
        ...[...volumes].map((name) => ({ kind: 'volume', key: name }) as const),
      ]
    },
    ofVolume(present, previous) {
      const name = (present ?? previous)?.metadata.name ?? ''
      if (previous?.spec?.claimRef !== undefined) reserved.delete(keyText(previous.spec.claimRef), name)
      if (present?.spec?.claimRef !== undefined) reserved.add(keyText(present.spec.claimRef), name)
      const isFree = present !== undefined && present.spec?.claimRef === undefined
      return [
        { kind: 'volume', key: name },
        ...(present === undefined ? [] : claimsOf(present)),
        ...(previous === undefined ? [] : claimsOf(previous)),
        ...(isFree && present.status?.phase === 'Available'
          ? [{ kind: 'waiting', key: classOfVolume(present) } as const]
          : []),
      ]
    },
    ofPodsClaim: (claim) => [
      { kind: 'claim', key: claim },
      ...[...reserved.of(claim)].map((key) => ({ kind: 'volume', key }) as const),
    ],
    ofNode: (name) => [...selecting.of(name)].map((key) => ({ kind: 'claim', key }) as const),
  }
}

/** A claim's volumes are visited when it comes, goes, or gets another one; also one that it does not name yet. */
function volumesConcerned(
  present: StoredClaim | undefined,
  previous: StoredClaim | undefined,
  reserved: Iterable<string>,
): readonly string[] {
  const names = [present, previous].map((one) => one?.spec?.volumeName ?? '')
  const isSame = present !== undefined && previous !== undefined && names[0] === names[1]
  return isSame ? [] : [...reserved, ...names.filter((name) => name !== '')]
}

/** The key as a queue has it. */
export function textOfKey({ kind, key }: BinderKey): string {
  return `${kind} ${key}`
}

export function readKey(text: string): BinderKey {
  const space = text.indexOf(' ')
  const kind = text.slice(0, space)
  return { kind: kind === 'claim' || kind === 'volume' ? kind : 'waiting', key: text.slice(space + 1) }
}
