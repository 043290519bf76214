/**
 * Loop: requests the tokens of service accounts that volumes of pods contain, and renews them (pkg/kubelet/token/token_manager.go).
 * A token is kept with the volumes of its pod: in memory, which an agent that restarts reads, and on the disk, with which the pod
 * starts after a power cut without a controller.
 */
import type { Pod } from '../../../api/pod.ts'
import { isObject } from '../../../api/text/json.ts'
import { type ApiAnswer, type ApiClient, ApiUnreachable, statusMessage } from '../../../daemon/api-client.ts'
import { type BackoffSettings, backoffMs } from '../../../daemon/backoff.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { type Log, storyOf } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { workQueue } from '../../../daemon/work-queue.ts'
import { podPath } from '../wanted/desired-pods.ts'
import { type DriverTokensOf, type PodTokens, renewalInMs, type TokenNeed, tokenNeeds } from './token-needs.ts'
import type { VolumeStore } from './volume-store.ts'

export type TokenManagerNeeds = {
  readonly api: Pick<ApiClient, 'post'>
  readonly volumes: Pick<VolumeStore, 'saveToken' | 'savedToken'>
  readonly driverTokens: DriverTokensOf
  /** Called when a token of the pod arrived, and when the first request for it failed. */
  readonly changed: (uid: string) => void
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
}

export interface TokenManager extends Loop {
  /** The tokens of the pod that are here; requests the others, and does not wait for them. The same map until one changes. */
  of(pod: Pod): Promise<PodTokens>
  /** The pod needs no tokens any more. */
  forget(uid: string): void
}

type Held = {
  readonly pod: Pod
  readonly need: TokenNeed
  readonly token?: string
  /** Why the last request failed. */
  readonly problem?: string
  readonly failures: number
  /** Monotonic: when it was written to the disk. */
  readonly savedMs?: number
}

/** A pod waits for it, or has one that is valid for the time being. */
const retries: { readonly [State in 'absent' | 'held']: BackoffSettings } = {
  absent: { firstMs: 1_000, maxMs: 30_000 },
  held: { firstMs: 5_000, maxMs: 5 * 60_000 },
}
/** A token that an earlier agent has left may be old: it is renewed within this time. */
const settleMs = 60_000
/** At most one write of a token to the card in this time. */
const saveEveryMs = 12 * 3600_000
const parallel = 4
/** Longer than any token of the controller. */
const longestToken = 16 * 1024
const none: PodTokens = new Map()

/** `renewalMs`: a token is renewed at least this often. */
export function tokenManager(needs: TokenManagerNeeds, { renewalMs }: { readonly renewalMs: number }): TokenManager {
  const { api, volumes, clock, random, log } = needs
  const queue = workQueue(clock, random)
  const held = heldTokens()

  const take = async (pod: Pod, uid: string, id: string, need: TokenNeed) => {
    const token = await volumes.savedToken(uid, id).catch((error) => {
      log.warn('Cannot read a saved token', { pod: podPath(pod), error })
      return undefined
    })
    held.set(uid, id, { pod, need, failures: 0, ...(token !== undefined && { token }) })
    queue.addAfter(keyOf(uid, id), token === undefined ? 0 : random() * settleMs)
  }

  const save = async (uid: string, id: string, token: string, before: Held): Promise<Pick<Held, 'savedMs'>> => {
    const { savedMs } = before
    const durable = savedMs === undefined || clock.monotonicMs() - savedMs >= saveEveryMs
    try {
      await volumes.saveToken(uid, id, token, { durable })
      return durable ? { savedMs: clock.monotonicMs() } : { savedMs }
    } catch (error) {
      log.warn('Token not saved; the pod cannot start after a reboot without the controller', {
        pod: podPath(before.pod),
        error,
      })
      return {}
    }
  }

  /** Returns the time until the next request. */
  const renew = async (uid: string, id: string, one: Held, signal: AbortSignal): Promise<number> => {
    const token = await requested(api, one, signal)
    const saved = held.get(uid, id) ? await save(uid, id, token, one) : {}
    // The pod may be gone since.
    if (held.get(uid, id) === undefined) return 0
    const { pod, need } = one
    held.set(uid, id, { pod, need, token, failures: 0, ...saved })
    needs.changed(uid)
    return renewalInMs(token, need, { mostMs: renewalMs, random })
  }

  const failed = (uid: string, id: string, one: Held, error: unknown): number => {
    if (held.get(uid, id) === undefined) return 0
    const problem = `failed to fetch token: ${storyOf(error)}`
    const isNew = one.problem !== problem
    held.set(uid, id, { ...one, problem, failures: one.failures + 1 })
    const retryInMs = backoffMs(one.failures, retries[one.token === undefined ? 'absent' : 'held'], random)
    const level = isNew && !(error instanceof ApiUnreachable) ? 'warn' : 'debug'
    log[level]('Token of a service account not issued', { pod: podPath(one.pod), retryInMs, error })
    if (isNew && one.token === undefined) needs.changed(uid)
    return retryInMs
  }

  const visit = async (key: string, signal: AbortSignal) => {
    const [uid = '', id = ''] = key.split('/')
    const one = held.get(uid, id)
    if (one === undefined) return queue.done(key)
    try {
      queue.done(key, await renew(uid, id, one, signal))
    } catch (error) {
      if (signal.aborted) queue.done(key)
      else queue.done(key, failed(uid, id, one, error))
    }
  }

  return {
    name: 'tokens',
    async of(pod) {
      const uid = pod.metadata.uid ?? ''
      for (const [id, need] of tokenNeeds(pod, needs.driverTokens)) {
        if (held.get(uid, id) === undefined) await take(pod, uid, id, need)
      }
      return held.of(uid)
    },
    forget: held.forget,
    async run(signal) {
      const under = new Set<Promise<void>>()
      for await (const key of queue.keys(signal)) {
        const one: Promise<void> = visit(key, signal).finally(() => under.delete(one))
        under.add(one)
        if (under.size >= parallel) await Promise.race(under)
      }
      await Promise.all(under)
    },
  }
}

/** By UID, then by the id of the token. */
function heldTokens() {
  const held = new Map<string, Map<string, Held>>()
  const shown = new Map<string, PodTokens>()
  return {
    get: (uid: string, id: string) => held.get(uid)?.get(id),
    of: (uid: string) => shown.get(uid) ?? none,
    set(uid: string, id: string, one: Held) {
      const ofPod = held.get(uid) ?? new Map<string, Held>()
      held.set(uid, ofPod.set(id, one))
      shown.set(uid, new Map([...ofPod].flatMap(([key, of]) => (isKnown(of) ? [[key, found(of)]] : []))))
    },
    forget(uid: string) {
      held.delete(uid)
      shown.delete(uid)
    },
  }
}

function isKnown({ token, problem }: Held): boolean {
  return token !== undefined || problem !== undefined
}

function found({ token, problem = '' }: Held): { readonly value: string } | { readonly missing: string } {
  return token === undefined ? { missing: problem } : { value: token }
}

function keyOf(uid: string, id: string): string {
  return `${uid}/${id}`
}

async function requested(api: Pick<ApiClient, 'post'>, { pod, need }: Held, signal: AbortSignal): Promise<string> {
  const { name = '', namespace = 'default', uid = '' } = pod.metadata
  const { serviceAccountName = '' } = pod.spec
  if (serviceAccountName === '') throw new Error('the pod has no service account')
  const { audience, expirationSeconds } = need
  const request = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {
      ...(audience !== '' && { audiences: [audience] }),
      expirationSeconds,
      boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
    },
  }
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccountName}/token`
  return tokenIn(await api.post(path, request, signal))
}

function tokenIn({ status, body }: ApiAnswer): string {
  if (status !== 201) throw new Error(statusMessage(body) || `the controller answered ${status}`)
  const answered = isObject(body) && isObject(body['status']) ? body['status']['token'] : undefined
  if (typeof answered === 'string' && /^[\w.-]+$/.test(answered) && answered.length <= longestToken) return answered
  throw new Error('the answer of the controller has no token')
}
