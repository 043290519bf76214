/** The field `ingress` of the configuration: whether the fleet has a proxy for Ingresses, and where it runs. */
import { dnsLabelProblem, dnsSubdomainProblem } from '../../../api/names.ts'
import { type Toleration, TolerationSchema } from '../../../api/pod.ts'
import { compareQuantities, tryParseQuantity } from '../../../api/quantity.ts'
import { bool, type Described, integer, list, mapOf, object, optional, text } from '../../../api/schema.ts'
import { labelProblems } from '../../../api/validation/metadata-validation.ts'
import { tolerationProblems } from '../../../api/validation/pod-validation.ts'

export const IngressSettingsSchema = object({
  image: optional(text),
  httpPort: optional(integer),
  httpsPort: optional(integer),
  defaultClass: optional(bool),
  defaultCertificate: optional(text),
  accessLog: optional(bool),
  memoryLimit: optional(text),
  nodeSelector: optional(mapOf(text)),
  tolerations: optional(list(TolerationSchema)),
})

export type IngressSettings = {
  /** An image with `haproxy` and `sh`. */
  readonly image: string
  /** Ports of the nodes. */
  readonly httpPort: number
  readonly httpsPort: number
  /** Ingresses without a class get that of the proxy. */
  readonly defaultClass: boolean
  /** `namespace/name` of the Secret for hosts without one of their own. */
  readonly defaultCertificate: string | undefined
  /** Each request is a line in the log of its proxy. */
  readonly accessLog: boolean
  /** Memory limit of a proxy's container. */
  readonly memoryLimit: string
  readonly nodeSelector: { readonly [label: string]: string }
  readonly tolerations: readonly Toleration[]
}

export const defaultIngressSettings: IngressSettings = {
  image: 'haproxy:3.0-alpine',
  httpPort: 80,
  httpsPort: 443,
  defaultClass: false,
  defaultCertificate: undefined,
  accessLog: false,
  memoryLimit: '256Mi',
  nodeSelector: {},
  tolerations: [],
}

/** What a proxy requests. */
export const leastMemory = '32Mi'

/** Adds what is wrong to `problems`. `isRouted`: Services have a data path. undefined: there is no proxy. */
export function ingressSettings(
  file: Described<typeof IngressSettingsSchema> | undefined,
  isRouted: boolean,
  problems: string[],
): IngressSettings | undefined {
  if (file === undefined) return undefined
  const settings = { ...defaultIngressSettings, ...file }
  const { image, httpPort, httpsPort, defaultCertificate, memoryLimit, nodeSelector, tolerations } = settings
  const check = (fine: boolean, problem: string) => {
    if (!fine) problems.push(`ingress${problem}`)
  }
  check(
    isRouted,
    ' needs podNetwork: routed, as the proxy reaches Services by their addresses: set it, or remove ingress',
  )
  check(/^[!-~]{1,512}$/.test(image), `.image: ${JSON.stringify(image)} must be the name of an image`)
  for (const [field, port] of [['httpPort', httpPort] as const, ['httpsPort', httpsPort] as const]) {
    check(port >= 1 && port <= 65_535, `.${field}: ${port} must be from 1 to 65535`)
  }
  check(httpPort !== httpsPort, `.httpsPort: ${httpsPort} must differ from httpPort`)
  const given = JSON.stringify(defaultCertificate)
  check(isSecretName(defaultCertificate), `.defaultCertificate: ${given} must be NAMESPACE/NAME of a Secret`)
  const size = tryParseQuantity(memoryLimit)
  const isEnough = size !== undefined && compareQuantities(size, leastMemory) >= 0
  check(isEnough, `.memoryLimit: ${JSON.stringify(memoryLimit)} must be a size of at least ${leastMemory} (like 512Mi)`)
  const inObjects = [
    ...labelProblems('ingress.nodeSelector', nodeSelector),
    ...tolerations.flatMap((one, at) => tolerationProblems(`ingress.tolerations[${at}]`, one)),
  ]
  for (const { field, message } of inObjects) problems.push(`${field}: ${message}`)
  return settings
}

function isSecretName(text: string | undefined): boolean {
  if (text === undefined) return true
  const [namespace = '', name = '', ...more] = text.split('/')
  return more.length === 0 && dnsLabelProblem(namespace) === undefined && dnsSubdomainProblem(name) === undefined
}
