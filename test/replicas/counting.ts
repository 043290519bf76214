/** ConfigMaps that count: writers write 1, 2, 3 … into one each, and watchers check that they receive each number once. */
import { systemClock as clock } from '../../daemon/clock.ts'
import { eventually } from '../support/wait.ts'
import type { ApiSession } from './api-session.ts'

/** One controller or more. */
export type Sessions = readonly [ApiSession, ...ApiSession[]]

const maps = '/api/v1/namespaces/default/configmaps'

export type CountingMap = {
  readonly metadata: { readonly name: string; readonly resourceVersion: string }
  readonly data?: { readonly n?: string }
}
type Listed = { readonly metadata: { readonly resourceVersion: string }; readonly items: readonly CountingMap[] }

export type Written = {
  readonly name: string
  /** Writes that were answered with 200, and those found done although no answer had come. */
  answered: number
  found: number
  /** Attempts that were refused or got no answer. */
  failed: number
  /** Answered writes that were not there when the object was read again. */
  lost: number
  /** The longest time from one answered write to the next. */
  longestGapMs: number
}

/** -1: it is not a counter. */
export const numberOf = (object: unknown): number => Number((object as CountingMap | undefined)?.data?.n ?? -1)
const versionOf = (object: unknown): string => (object as CountingMap).metadata.resourceVersion

/** Creates the object of the writer, with 0. */
export async function createCounter(name: string, sessions: Sessions): Promise<void> {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { n: '0' } }
  await eventually(`${name} is there`, async () => {
    for (const session of sessions) {
      const answer = await session.send('POST', maps, object)
      if (answer?.status === 201 || answer?.status === 409) return true
    }
    return false
  })
}

/** The object as this controller returns it, as soon as it does. */
export function readCounter(name: string, session: ApiSession): Promise<unknown> {
  return eventually(`${name} is read`, async () => {
    const answer = await session.send('GET', `${maps}/${name}`)
    if (answer?.status === 200) return answer.body
    throw new Error(`${session.url}: ${answer === undefined ? 'no answer' : JSON.stringify(answer)}`)
  })
}

export function patchCounter(name: string, n: number, session: ApiSession, resourceVersion?: string) {
  const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } }
  return session.send('PATCH', `${maps}/${name}`, { ...metadata, data: { n: String(n) } })
}

/**
 * Writes one number after the other until `signal` aborts, each with the version of the one before, through the first of
 * `sessions` that answers; the next one is tried where there is no answer or a refusal.
 */
export async function count(
  name: string,
  sessions: Sessions,
  { pauseMs, signal }: { readonly pauseMs: number; readonly signal: AbortSignal },
): Promise<Written> {
  const written: Written = { name, answered: 0, found: 0, failed: 0, lost: 0, longestGapMs: 0 }
  let [turn, n, lastMs] = [0, 0, performance.now()]
  const session = () => sessions[turn % sessions.length] ?? sessions[0]
  const anyVersion = async () => {
    for (; !signal.aborted; turn++) {
      const answer = await session().send('GET', `${maps}/${name}`)
      if (answer?.status === 200) return answer.body
      await clock.sleep(100, signal)
    }
    return undefined
  }
  let version = ''
  while (!signal.aborted) {
    const answer = version === '' ? undefined : await patchCounter(name, n + 1, session(), version)
    if (answer?.status === 200) {
      const nowMs = performance.now()
      written.longestGapMs = Math.max(written.longestGapMs, nowMs - lastMs)
      lastMs = nowMs
      written.answered += 1
      n += 1
      version = versionOf(answer.body)
      await clock.sleep(pauseMs * (0.5 + Math.random()), signal)
      continue
    }
    if (version !== '') written.failed += 1
    if (answer?.status !== 409) turn += 1
    const present = await anyVersion()
    if (present === undefined) break
    const stored = numberOf(present)
    if (stored === n + 1) written.found += 1
    if (stored < n) written.lost += n - stored
    n = stored
    version = versionOf(present)
  }
  return written
}

export type Watched = {
  /** The last number of each object. */
  readonly last: Map<string, number>
  events: number
  missed: number
  repeated: number
  /** Watches that were opened after the first. */
  resumed: number
  /** Lists after "Expired", as clients of Kubernetes make them. */
  relisted: number
}

/** Watches all counters until `signal` aborts: from the last version it received, at the next controller where one ends. `watched` changes meanwhile. */
export function watchCounters(sessions: Sessions, first: number, signal: AbortSignal) {
  const watched: Watched = { last: new Map(), events: 0, missed: 0, repeated: 0, resumed: 0, relisted: 0 }
  const { last } = watched
  let turn = first
  const session = () => sessions[turn % sessions.length] ?? sessions[0]
  const list = async (): Promise<string> => {
    for (; !signal.aborted; turn++) {
      const answer = await session().send('GET', maps)
      if (answer?.status !== 200) {
        await clock.sleep(100, signal)
        continue
      }
      const { metadata, items } = answer.body as Listed
      for (const item of items) {
        const n = numberOf(item)
        if (n < (last.get(item.metadata.name) ?? -1)) watched.repeated += 1
        if (n >= 0) last.set(item.metadata.name, n)
      }
      return metadata.resourceVersion
    }
    return ''
  }
  const take = (object: CountingMap) => {
    const { name } = object.metadata
    const n = numberOf(object)
    if (n < 0) return
    const before = last.get(name) ?? n - 1
    watched.events += 1
    if (n <= before) watched.repeated += 1
    if (n > before + 1) watched.missed += n - before - 1
    last.set(name, n)
  }
  /** Until it ends: the last version that was received. */
  const watch = async (from: string) => {
    let [version, isExpired] = [from, false]
    for await (const line of session().lines(`${maps}?watch=true&resourceVersion=${version}`, signal)) {
      if (!line.startsWith('{')) continue
      const { type, object, code } = JSON.parse(line)
      isExpired = code === 410 || object?.code === 410
      if (type !== 'ADDED' && type !== 'MODIFIED') continue
      take(object)
      version = versionOf(object)
    }
    return { version, isExpired }
  }
  const run = async () => {
    for (let version = await list(); !signal.aborted; ) {
      const ended = await watch(version)
      version = ended.version
      if (signal.aborted) return
      if (ended.isExpired) {
        watched.relisted += 1
        version = await list()
      } else {
        turn += 1
        watched.resumed += 1
        await clock.sleep(100, signal)
      }
    }
  }
  return { watched, ended: run() }
}
