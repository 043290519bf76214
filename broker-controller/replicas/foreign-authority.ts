/**
 * The authority of one controller against the one that the fleet trusts. Before a controller starts or leads, its files follow a
 * rollover that was done on another one; with an authority that they cannot follow it would sign certificates that no node accepts.
 */
import type { ConfigMap } from '../../api/config-map.ts'
import { certificatesIn } from '../../api/text/pem.ts'
import { caHash } from '../../certs/ca-hash.ts'
import { changeOver, finishRollover, NextKeyError, type Rollover, rolloverIfThere } from '../../certs/rollover.ts'
import type { Log } from '../../daemon/log.ts'
import type { ObjectKey, Store } from '../store/store.ts'

/** The ConfigMap that names the authorities of the fleet. */
export const clusterInfoKey: ObjectKey = { namespace: 'kube-public', name: 'cluster-info' }

/** The message has a remedy; a retry does not help. */
export class ForeignAuthorityError extends Error {
  override readonly name = 'ForeignAuthorityError'
}

/** Hashes. */
export type PublishedAuthorities = {
  /** undefined: of a fleet whose controller did not publish it yet. */
  readonly signing?: string | undefined
  readonly trusted: readonly string[]
}

/** What the files of this controller need before they are used. */
export type AuthorityStep = 'none' | 'change-over' | 'finish' | { readonly refused: 'absent' | 'another' | 'previous' }

/**
 * The authority that signs never becomes an earlier one, and one that the fleet no longer trusts after a rollover is not trusted again.
 */
export function nextAuthorityStep(
  held: Pick<Rollover, 'hash' | 'next' | 'previous'> | undefined,
  { signing, trusted }: PublishedAuthorities,
): AuthorityStep {
  if (trusted.length === 0) return 'none'
  if (held === undefined) return { refused: 'absent' }
  const { hash, next, previous } = held
  if (signing !== undefined && next === signing) return 'change-over'
  if (!trusted.includes(hash)) return { refused: 'another' }
  // With the published one as its previous one it was changed over here, and this is not published yet.
  if (signing !== undefined && hash !== signing && previous !== signing) return { refused: 'previous' }
  return hash === signing && previous !== undefined && !trusted.includes(previous) ? 'finish' : 'none'
}

/**
 * Before the authority is opened, which makes one where there is none: does the steps of a rollover that the fleet has behind it.
 * After a crash in between it does the rest. Throws ForeignAuthorityError where the fleet has an authority and this controller holds
 * none or another one, or cannot sign with the one that signs for the fleet: it would publish the previous one.
 */
export async function followAuthority(store: Store, folder: string, log: Log): Promise<void> {
  const published = await publishedAuthorities(store)
  for (;;) {
    const held = await rolloverIfThere(folder)
    const step = nextAuthorityStep(held, published)
    if (step === 'none') return
    if (typeof step !== 'string') throw refusal(step.refused, folder, published)
    const done = step === 'change-over' ? await changedOver(folder, published) : await finishRollover(folder)
    log.info('Authority follows the rollover of the fleet', { step, caHash: done.hash })
  }
}

/**
 * The refusal of `followAuthority` alone, which changes no file, with the ConfigMap `clusterInfoKey` of a store that is not open.
 */
export async function refuseFolderOfOthers(info: ConfigMap | undefined, folder: string): Promise<void> {
  const published = publishedIn(info)
  const step = nextAuthorityStep(await rolloverIfThere(folder), published)
  if (typeof step !== 'string') throw refusal(step.refused, folder, published)
}

async function publishedAuthorities(store: Store): Promise<PublishedAuthorities> {
  return publishedIn(await store.get('configmaps', clusterInfoKey))
}

function publishedIn(info: ConfigMap | undefined): PublishedAuthorities {
  const { authorities = '', caHash: signing } = info?.data ?? {}
  return { signing, trusted: certificatesIn(authorities).map((one) => caHash(one)) }
}

async function changedOver(folder: string, { signing }: PublishedAuthorities): Promise<Rollover> {
  try {
    return await changeOver(folder)
  } catch (error) {
    if (!(error instanceof NextKeyError)) throw error
    throw new ForeignAuthorityError(
      `The authority in ${folder} is the previous one: certificates of the fleet are signed by ${signing}, and ${error.message}. ${remedy}`,
    )
  }
}

const remedy =
  'Copy the authority folder and secrets.key of another controller, or of a backup, to this machine, in place of what is there'

function refusal(
  why: 'absent' | 'another' | 'previous',
  folder: string,
  { signing, trusted }: PublishedAuthorities,
): ForeignAuthorityError {
  const ofFleet = `the fleet in this store trusts ${trusted.join(' and ')}`
  const messages = {
    absent: `${folder} has no authority, and ${ofFleet}`,
    another: `The authority in ${folder} is another one, and ${ofFleet}`,
    previous: `The authority in ${folder} is the previous one: certificates of the fleet are signed by ${signing}, which it does not have`,
  }
  return new ForeignAuthorityError(`${messages[why]}. ${remedy}`)
}
