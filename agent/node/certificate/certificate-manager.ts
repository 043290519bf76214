/**
 * Loop: renews the node's certificate long before it expires, and as soon as another authority signs; keeps the trusted
 * authorities equal to the fleet's. Nothing restarts for it.
 */

import { X509Certificate } from 'node:crypto'
import { certificatesIn } from '../../../api/text/pem.ts'
import { caHash, trustHash } from '../../../certs/ca-hash.ts'
import { alarm } from '../../../daemon/alarm.ts'
import { longestBackoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { formatDuration } from '../../../daemon/duration.ts'
import type { Log } from '../../../daemon/log.ts'
import { renewalDueMs } from '../../../daemon/renewal.ts'
import type { Loop } from '../../../daemon/run.ts'

/** PEM, all three. `ca` are the authorities this node trusts. */
export type NodeCredentials = { readonly ca: string; readonly certificate: string; readonly key: string }

export type CertificateManagerNeeds = {
  readonly credentials: () => NodeCredentials
  /** Resolves when they are on disk. Rejects if the disk does not accept the write. */
  readonly save: (credentials: NodeCredentials) => Promise<void>
  /** Used for every connection from now on. */
  readonly use: (credentials: NodeCredentials) => void
  /** Requests a new certificate for a new key, with the present credentials. Rejects if the controller issues none now. */
  readonly renew: (signal: AbortSignal) => Promise<Pick<NodeCredentials, 'certificate' | 'key'>>
  /** The authorities the fleet trusts, PEM, the one that signs first; undefined if the controller does not list them. */
  readonly authorities: (signal: AbortSignal) => Promise<string | undefined>
  /** Each failed renewal. */
  readonly renewalFailed?: () => void
  /** The date from the best source: this machine's clock may be years off. */
  readonly nowMs: () => number
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export interface CertificateManager extends Loop {
  /** Sets the hash of the authorities that the controller trusts. */
  trust(hash: string): void
  /** `nowMs` may be more exact now. */
  dateChanged(): void
}

/** The longest wait between two checks: the clock may jump. */
const checkMs = 3600_000
/** Doubling waits, as in the kubelet (client-go util/certificate/certificate_manager.go: 2 s, factor 2, 5 steps), then every 32 s. */
const retry = { firstMs: 2_000, maxMs: 32_000 }
/** The nodes of a fleet renew spread over this time when another authority signs. */
const changeOverMs = 60_000

export function certificateManager(needs: CertificateManagerNeeds): CertificateManager {
  const { credentials, nowMs, clock, random, log } = needs
  const wake = alarm(clock)
  const share = random()
  let fleetTrust: string | undefined
  /** The signing authority, if it is not the one that signed our certificate, and when to renew; monotonic. */
  let newSigner: { readonly hash: string; readonly dueMs: number } | undefined
  let failures = 0
  /** The last pass found nothing to renew. */
  let isIdle = false
  /** The credentials in use are not on disk. */
  let isUnsaved = false

  /** A failed write is logged and retried: new credentials are used without it, and requested once. */
  const save = async (next: NodeCredentials) => {
    try {
      await needs.save(next)
      isUnsaved = false
    } catch (error) {
      if (!isUnsaved) log.warn('New credentials of this node not saved, used until the agent ends', { error })
      isUnsaved = true
    }
  }

  const adopt = async (next: NodeCredentials) => {
    await save(next)
    needs.use(next)
  }

  const updateAuthorities = async (signal: AbortSignal) => {
    if (fleetTrust === undefined || fleetTrust === trustHash(credentials().ca)) return
    const authorities = await needs.authorities(signal)
    if (authorities === undefined || trustHash(authorities) !== fleetTrust) return
    await adopt({ ...credentials(), ca: authorities })
    log.info('Authorities of the fleet adopted', { trusted: certificatesIn(authorities).map(caHash) })
  }

  const dueInMs = (): number => {
    const own = certificateIn(credentials().certificate)
    // Damaged: connecting fails with a remedy, and joining again replaces it.
    if (own === undefined) return Number.POSITIVE_INFINITY
    const [first] = certificatesIn(credentials().ca)
    const hash = first === undefined ? undefined : caHash(first)
    const isCurrent = first === undefined || own.verify(new X509Certificate(first).publicKey)
    if (isCurrent) newSigner = undefined
    else if (newSigner?.hash !== hash)
      newSigner = { hash: hash ?? '', dueMs: clock.monotonicMs() + share * changeOverMs }
    const life = { sinceMs: Date.parse(own.validFrom), untilMs: Date.parse(own.validTo) }
    // Issued while the controller's clock was ahead.
    if (nowMs() < life.sinceMs) return 0
    const newSignerInMs = (newSigner?.dueMs ?? Number.POSITIVE_INFINITY) - clock.monotonicMs()
    return Math.min(renewalDueMs(life, share) - nowMs(), newSignerInMs)
  }

  const renew = async (signal: AbortSignal) => {
    const { certificate, key } = await needs.renew(signal)
    await adopt({ ...credentials(), certificate, key })
    log.info('Certificate of this node renewed', { until: new X509Certificate(certificate).validTo })
  }

  const pass = async (signal: AbortSignal): Promise<number> => {
    isIdle = false
    if (isUnsaved) await save(credentials())
    await updateAuthorities(signal)
    const inMs = dueInMs()
    isIdle = inMs > 0
    if (isIdle) return inMs
    await renew(signal)
    // If the clock is years ahead of the controller's, the new certificate would be due at once.
    return checkMs
  }

  return {
    name: 'certificate',
    trust(hash) {
      fleetTrust = hash
      if (hash !== trustHash(credentials().ca)) wake.ring()
    },
    dateChanged() {
      if (isIdle && dueInMs() <= 0) wake.ring()
    },
    async run(signal) {
      while (!signal.aborted) {
        let waitMs: number
        try {
          waitMs = Math.min(checkMs, await pass(signal))
          failures = 0
        } catch (error) {
          if (signal.aborted) return
          needs.renewalFailed?.()
          waitMs = longestBackoffMs(failures++, retry) * (1 + 0.1 * random())
          const leftMs = Date.parse(certificateIn(credentials().certificate)?.validTo ?? '') - nowMs()
          logFailure(log, failures === 1, { error, retryInMs: Math.round(waitMs), leftMs })
        }
        await wake.sleep(waitMs, signal)
      }
    },
  }
}

function certificateIn(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

type RenewalFailure = { readonly error: unknown; readonly retryInMs: number; readonly leftMs: number }

/** Logs the first failure as a warning, the others at debug level. */
function logFailure(log: Log, isFirst: boolean, { error, retryInMs, leftMs }: RenewalFailure): void {
  const left = leftMs > 0 ? formatDuration(leftMs) : 'none: it has expired, if the clock is right'
  const facts = { error, retryInMs, left }
  if (isFirst) log.warn('Certificate of this node not renewed, trying until it works', facts)
  else log.debug('Certificate of this node not renewed', facts)
}
