/**
 * Pulls an image through Docker: for as long as it makes progress, with the registry's message when it fails, and without pulling
 * finished layers again.
 */
import { withOwnSignal } from '../../../daemon/aborted.ts'
import { longestTimerMs } from '../../../daemon/clock.ts'
import { type PullOptions, type PullProgress, type RegistryCredentials, RuntimeError } from '../../runtime/runtime.ts'
import { failureOf, type Progress, progressShape, runtimeError } from './call.ts'
import type { Engine } from './engine.ts'
import { partialImage } from './partial-images.ts'

/** Timeout after the last byte was received: unpacking to a slow card may take long without progress messages. */
const unpackMs = 10 * 60_000
/** The layers of a pull that ends sooner are not kept. */
const worthKeepingMs = 10_000

export type PullSource = { readonly fromImage: string; readonly tag: string }

export function pull(engine: Engine, image: string, source: PullSource, options: PullOptions): Promise<void> {
  return withOwnSignal(options.signal, (stop) => pullUntil(stop, engine, image, source, options))
}

/** `stop` aborts when the pull is cancelled, and is aborted here when the pull stalls. */
async function pullUntil(
  stop: AbortController,
  engine: Engine,
  image: string,
  source: PullSource,
  options: PullOptions,
): Promise<void> {
  const { signal, credentials, stallMs, progress } = options
  const tried = `Cannot pull image ${image}`
  const partial = partialImage(engine, image)
  const layers = layerCount()
  const beganMs = performance.now()
  let kept = 0
  let keeping: Promise<void> | undefined

  /** Never fails the pull: if its layers cannot be kept, the pull continues, and a later one pulls them again. */
  const keep = (): Promise<void> => {
    const done = layers.done()
    if (keeping !== undefined) return keeping
    if (done.length <= kept || layers.allDone()) return Promise.resolve()
    keeping = partial
      .keep(done)
      .then(() => {
        kept = done.length
      })
      .catch(() => undefined)
      .finally(() => {
        keeping = undefined
      })
    return keeping
  }

  let watchdog: NodeJS.Timeout | undefined
  const watch = () => {
    clearTimeout(watchdog)
    const giveUp = () => keep().finally(() => stop.abort())
    const patienceMs = layers.allFetched() ? Math.max(unpackMs, stallMs) : stallMs
    watchdog = setTimeout(giveUp, Math.min(patienceMs, longestTimerMs))
  }
  watch()
  try {
    const path = `/images/create?${new URLSearchParams(source)}`
    const request = { method: 'POST', path, headers: authOf(credentials) } as const
    for await (const message of await engine.answers.stream(request, progressShape, stop.signal)) {
      if (message.error !== undefined) throw new Error(message.error)
      const change = layers.take(message)
      watch()
      if (change === 'retry' || (change === 'layer' && performance.now() - beganMs > worthKeepingMs)) void keep()
      progress?.(layers.progress())
    }
    await keeping
    await partial.drop().catch(() => undefined) // the garbage collector removes it then
  } catch (error) {
    if (signal.aborted) throw pullError(tried, 'The pull was cancelled')
    throw stop.signal.aborted ? pullError(tried, `No progress for ${stallMs / 1000} s`) : failedPull(tried, error)
  } finally {
    clearTimeout(watchdog)
  }
}

function failedPull(tried: string, error: unknown): RuntimeError {
  const { status, text } = failureOf(error)
  return status === undefined && isLinkError(error) ? runtimeError(tried, error) : pullError(tried, plain(text))
}

function pullError(tried: string, why: string): RuntimeError {
  return new RuntimeError('ImagePull', tried, { cause: new Error(why) })
}

type Layer = { readonly fetched: number; readonly size: number; readonly state: 'waits' | 'fetched' | 'done' }

const newLayer: Layer = { fetched: 0, size: 0, state: 'waits' }
type LayerChange = (layer: Layer, detail: NonNullable<Progress['progressDetail']>) => Layer

/** By Docker's word for what happened to a layer. */
const layerChanges: ReadonlyMap<string, LayerChange> = new Map<string, LayerChange>([
  ['Pulling fs layer', (layer) => layer],
  ['Downloading', (layer, { current = 0, total = layer.size }) => ({ ...layer, fetched: current, size: total })],
  ['Download complete', (layer) => ({ ...layer, fetched: layer.size, state: 'fetched' })],
  ['Pull complete', (layer) => ({ ...layer, state: 'done' })],
  ['Already exists', (layer) => ({ ...layer, state: 'done' })],
])

/** Docker's messages → the progress of the pull. */
function layerCount() {
  const layers = new Map<string, Layer>()
  /** An image with two equal layers lists them twice. */
  const order: string[] = []
  const all = () => [...layers.values()]

  return {
    take({ status, id, progressDetail = {} }: Progress): 'layer' | 'retry' | undefined {
      if (status === undefined || id === undefined) return undefined
      if (status === 'Pulling fs layer' || status === 'Already exists') order.push(id)
      const change = layerChanges.get(status)
      if (change !== undefined) layers.set(id, change(layers.get(id) ?? newLayer, progressDetail))
      if (/^Retrying in/.test(status)) return 'retry'
      return status === 'Pull complete' ? 'layer' : undefined
    },
    allFetched: () => layers.size > 0 && all().every(({ state }) => state !== 'waits'),
    allDone: () => layers.size > 0 && all().every(({ state }) => state === 'done'),
    /** Layers are unpacked in order: the number of leading layers that are unpacked. */
    done() {
      const end = order.findIndex((id) => layers.get(id)?.state !== 'done')
      return end < 0 ? order : order.slice(0, end)
    },
    progress: (): PullProgress => ({
      layers: layers.size,
      layersDone: all().filter(({ state }) => state === 'done').length,
      fetchedBytes: all().reduce((sum, { fetched }) => sum + fetched, 0),
      knownBytes: all().reduce((sum, { size }) => sum + size, 0),
    }),
  }
}

function plain(text: string): string {
  return /no matching manifest for/.test(text) ? `${text}: the image is not built for this machine` : text
}

/** In a header of its own: never in the URL, which is logged. */
function authOf(credentials: RegistryCredentials | undefined): { readonly [name: string]: string } {
  if (credentials === undefined) return {}
  const { username, password, identityToken } = credentials
  const auth = identityToken === '' ? { username, password } : { identitytoken: identityToken }
  // base64url with padding (Docker Engine API, Authentication).
  const base64 = Buffer.from(JSON.stringify(auth)).toString('base64').replace(/\+/g, '-').replace(/\//g, '_')
  return { 'X-Registry-Auth': base64 }
}

/** The engine itself did not answer, as opposed to the registry. */
function isLinkError(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error
}
