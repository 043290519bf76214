/** The annotations of an Ingress that change how the proxy serves it. There are no annotations with text for the proxy itself. */
import { quantityToNumber, tryParseQuantity } from '../../../api/quantity.ts'
import { parseDuration } from '../../../daemon/duration.ts'
import type { IngressProblem } from './ingress-problem.ts'

export type BackendProtocol = 'http' | 'https' | 'h2c'

export type IngressOptions = {
  /** Requests by HTTP are redirected to HTTPS. */
  readonly redirect: boolean
  /** The longest wait for the next bytes of an answer; undefined: that of the proxy. */
  readonly timeoutSeconds: number | undefined
  /** A request that announces a larger body is refused; undefined: none is. */
  readonly maxBodyBytes: number | undefined
  /** Which protocol the pods of its Services speak. */
  readonly protocol: BackendProtocol
}

export const ingressAnnotations = {
  redirect: 'bramble.dev/https-redirect',
  timeout: 'bramble.dev/proxy-timeout',
  maxBody: 'bramble.dev/max-body-size',
  protocol: 'bramble.dev/backend-protocol',
} as const

const dayMs = 24 * 3600_000

/** A value that cannot be read counts as absent. */
export function ingressOptions(annotations: { readonly [key: string]: string } = {}): {
  readonly options: IngressOptions
  readonly problems: readonly IngressProblem[]
} {
  const problems: IngressProblem[] = []
  const read = <T>(key: string, parse: (text: string) => T | undefined, expected: string): T | undefined => {
    if (!Object.hasOwn(annotations, key)) return undefined
    const text = annotations[key] ?? ''
    const value = parse(text)
    if (value === undefined) {
      const given = JSON.stringify(text.slice(0, 40))
      const message = `annotation ${key}: ${given} is ignored, it must be ${expected}`
      problems.push({ reason: 'InvalidAnnotation', message })
    }
    return value
  }
  const { redirect, timeout, maxBody, protocol } = ingressAnnotations
  const options = {
    redirect: read(redirect, truth, '"true" or "false"') ?? false,
    timeoutSeconds: read(timeout, seconds, 'a duration from 1s to 24h, like 10m'),
    maxBodyBytes: read(maxBody, bytes, 'a size above 0, like 10Mi'),
    protocol: read(protocol, protocolNamed, 'HTTP, HTTPS or H2C') ?? 'http',
  }
  return { options, problems }
}

function truth(text: string): boolean | undefined {
  if (text === 'true') return true
  return text === 'false' ? false : undefined
}

function seconds(text: string): number | undefined {
  const ms = parseDuration(text)
  return ms === undefined || ms < 1000 || ms > dayMs ? undefined : Math.round(ms / 1000)
}

function bytes(text: string): number | undefined {
  const quantity = tryParseQuantity(text)
  const size = quantity === undefined ? 0 : Math.floor(quantityToNumber(quantity))
  return size >= 1 && size <= Number.MAX_SAFE_INTEGER ? size : undefined
}

function protocolNamed(text: string): BackendProtocol | undefined {
  const lower = text.toLowerCase()
  return lower === 'http' || lower === 'https' || lower === 'h2c' ? lower : undefined
}
