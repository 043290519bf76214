/**
 * Loop: the node's certificate is renewed long before its end, and as soon as another authority signs; which authorities
 * are trusted is kept up with the fleet's. Nothing is started again for it.
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
  /** On disk when it resolves. Rejects where the disk does not take it. */
  readonly write: (credentials: NodeCredentials) => Promise<void>
  /** From now on. */
  readonly use: (credentials: NodeCredentials) => void
  /** A new key and its certificate, asked for with the present ones. Rejects when it cannot be had now. */
  readonly renew: (signal: AbortSignal) => Promise<Pick<NodeCredentials, 'certificate' | 'key'>>
  /** The authorities the fleet trusts, PEM, the one that signs first; undefined where the controller does not say. */
  readonly authorities: (signal: AbortSignal) => Promise<string | undefined>
  /** The date, by whoever knows it best: this machine's clock may be years off. */
  readonly nowMs: () => number
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export interface CertificateManager extends Loop {
  /** The controller trusts these: a hash of its authorities. */
  trust(hash: string): void
  /** The date may be known better now. */
  dateHeard(): void
}

/** A clock may jump: no sleep is trusted for longer. */
const lookMs = 3600_000
/** As the kubelet: five tries with waits that double, then every 32 s. */
const retry = { firstMs: 2_000, maxMs: 32_000 }
/** So long a fleet takes to go over to another authority. */
const changeOverMs = 60_000

export function certificateManager(needs: CertificateManagerNeeds): CertificateManager {
  const { credentials, nowMs, clock, random, log } = needs
  const wake = alarm(clock)
  const share = random()
  let wantedTrust: string | undefined
  /** The authority that signs, since it was seen to be another than ours; monotonic. */
  let other: { readonly hash: string; readonly dueMs: number } | undefined
  let failures = 0
  /** Nothing was to be done by the date that was known. */
  let isIdle = false
  /** Those in use are not on disk. */
  let isUnwritten = false

  /** A disk that takes no writes lets no certificate end, and has none asked for again and again. */
  const write = async (next: NodeCredentials) => {
    try {
      await needs.write(next)
      isUnwritten = false
    } catch (error) {
      if (!isUnwritten) log.warn('New credentials of this node not written down, used until the agent ends', { error })
      isUnwritten = true
    }
  }

  const take = async (next: NodeCredentials) => {
    await write(next)
    needs.use(next)
  }

  const lookAtTrust = async (signal: AbortSignal) => {
    if (wantedTrust === undefined || wantedTrust === trustHash(credentials().ca)) return
    const authorities = await needs.authorities(signal)
    if (authorities === undefined || trustHash(authorities) !== wantedTrust) return
    await take({ ...credentials(), ca: authorities })
    log.info('Authorities of the fleet taken over', { trusted: certificatesIn(authorities).map(caHash) })
  }

  const dueInMs = (): number => {
    const own = certificateIn(credentials().certificate)
    // Spoiled: connecting says so, and joining again mends it.
    if (own === undefined) return Number.POSITIVE_INFINITY
    const [first] = certificatesIn(credentials().ca)
    const hash = first === undefined ? undefined : caHash(first)
    const isCurrent = first === undefined || own.verify(new X509Certificate(first).publicKey)
    if (isCurrent) other = undefined
    else if (other?.hash !== hash) other = { hash: hash ?? '', dueMs: clock.monotonicMs() + share * changeOverMs }
    const life = { sinceMs: Date.parse(own.validFrom), untilMs: Date.parse(own.validTo) }
    // Made while the controller's clock was ahead.
    if (nowMs() < life.sinceMs) return 0
    const otherInMs = (other?.dueMs ?? Number.POSITIVE_INFINITY) - clock.monotonicMs()
    return Math.min(renewalDueMs(life, share) - nowMs(), otherInMs)
  }

  const renew = async (signal: AbortSignal) => {
    const { certificate, key } = await needs.renew(signal)
    await take({ ...credentials(), certificate, key })
    log.info('Certificate of this node renewed', { until: new X509Certificate(certificate).validTo })
  }

  const pass = async (signal: AbortSignal): Promise<number> => {
    isIdle = false
    if (isUnwritten) await write(credentials())
    await lookAtTrust(signal)
    const inMs = dueInMs()
    isIdle = inMs > 0
    if (isIdle) return inMs
    await renew(signal)
    // By a clock that is years ahead of the controller's the new one would be due at once.
    return lookMs
  }

  return {
    name: 'certificate',
    trust(hash) {
      wantedTrust = hash
      if (hash !== trustHash(credentials().ca)) wake.ring()
    },
    dateHeard() {
      if (isIdle && dueInMs() <= 0) wake.ring()
    },
    async run(signal) {
      while (!signal.aborted) {
        let waitMs: number
        try {
          waitMs = Math.min(lookMs, await pass(signal))
          failures = 0
        } catch (error) {
          if (signal.aborted) return
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

/** The first failure is a warning, the others are for debugging. */
function logFailure(log: Log, isFirst: boolean, { error, retryInMs, leftMs }: RenewalFailure): void {
  const left = leftMs > 0 ? formatDuration(leftMs) : 'none: it has ended, if the clock is right'
  const facts = { error, retryInMs, left }
  if (isFirst) log.warn('Certificate of this node not renewed, trying until it works', facts)
  else log.debug('Certificate of this node not renewed', facts)
}
