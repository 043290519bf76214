/** Pulling an image through Docker: as long as it makes progress, and told in the registry's words when it fails. */
import type Dockerode from 'dockerode'
import { type RegistryCredentials, RuntimeError } from '../pods/runtime.ts'
import { messages } from './docker-call.ts'
import { failureOf, runtimeError } from './docker-errors.ts'

/** A pull that gets nothing for this long is given up, as by the kubelet. */
const pullStallMs = 60_000
export async function pull(
  docker: Dockerode,
  image: string,
  source: { readonly fromImage: string; readonly tag: string },
  signal: AbortSignal,
  credentials?: RegistryCredentials,
): Promise<void> {
  const tried = `Cannot pull image ${image}`
  const stalled = new AbortController()
  const stop = AbortSignal.any([signal, stalled.signal])
  const watchdog = setTimeout(() => stalled.abort(), pullStallMs)
  try {
    const stream = await docker.createImage(authOf(credentials), { ...source, abortSignal: stop })
    for await (const progress of messages(stream)) {
      watchdog.refresh()
      if (typeof progress['error'] === 'string') throw new Error(progress['error'])
    }
  } catch (error) {
    const { status, text } = failureOf(error)
    if (signal.aborted) throw new RuntimeError('ImagePull', tried, { cause: new Error('It was called off') })
    if (stalled.signal.aborted) {
      const cause = new Error(`No progress for ${pullStallMs / 1000} s`)
      throw new RuntimeError('ImagePull', tried, { cause })
    }
    if (status === undefined && isLinkError(error)) throw runtimeError(tried, error)
    throw new RuntimeError('ImagePull', tried, { cause: new Error(text) })
  } finally {
    clearTimeout(watchdog)
  }
}

/** As a header of its own: never in the address, which is written down. */
function authOf(credentials: RegistryCredentials | undefined) {
  if (credentials === undefined) return {}
  const { username, password, identityToken } = credentials
  return identityToken === '' ? { username, password } : { identitytoken: identityToken }
}

/** The engine itself did not answer, as against the registry behind it. */
function isLinkError(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error
}
