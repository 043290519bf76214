/** Ingresses, Services and certificates for tests; pass only the fields the test is about. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import type { HTTPIngressPath, Ingress, IngressSpec } from '../../api/network/ingress.ts'
import type { Service } from '../../api/network/service.ts'
import type { Secret } from '../../api/secret.ts'
import { type Authority, authorityCertificate } from '../../certs/authority.ts'
import { issueServer } from '../../certs/issue.ts'

type Metadata = Ingress['metadata']

/** `default/NAME` of the class `bramble`, created in this second. */
export function anIngress(
  name: string,
  spec: Partial<IngressSpec>,
  more: Metadata & { readonly second?: number } = {},
): Ingress {
  const { second = 0, ...metadata } = more
  const creationTimestamp = new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString().replace('.000Z', 'Z')
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name, namespace: 'default', creationTimestamp, ...metadata },
    spec: { ingressClassName: 'bramble', ...spec },
  }
}

/** `Exact /a web`, `Prefix / web:8080`, `Prefix /b web:http`: path type, path, and a Service with its port, 80 by default. */
export function aPath(text: string): HTTPIngressPath {
  const [pathType = '', path = '', backend = ''] = text.split(' ')
  return { pathType, path, backend: { service: serviceOf(backend) } }
}

export function serviceOf(text: string): { name: string; port: { name: string } | { number: number } } {
  const [name = '', port = '80'] = text.split(':')
  return { name, port: /^\d+$/.test(port) ? { number: Number(port) } : { name: port } }
}

/** A rule of this host, '' for all, with paths as `aPath` reads them. */
export function aRule(host: string, ...paths: readonly string[]): NonNullable<IngressSpec['rules']>[number] {
  return { ...(host !== '' && { host }), http: { paths: paths.map(aPath) } }
}

/** `default/NAME` with the port `http`. */
export function aService(name: string, clusterIP = '10.96.0.7', spec: Partial<Service['spec']> = {}): Service {
  const ports = [{ name: 'http', port: 80, protocol: 'TCP' as const }]
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { type: 'ClusterIP', clusterIP, ports, ...spec },
  }
}

/** An authority of this process alone. */
export function anAuthority(): Authority {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const nowMs = Date.now()
  const certificate = authorityCertificate(privateKey, nowMs)
  const key = createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return { certificate, trusted: certificate, key, notBeforeMs: nowMs - 1000, notAfterMs: nowMs + 86_400_000, hash: '' }
}

/** A Secret of type kubernetes.io/tls with a new certificate for these hosts. */
export function aCertificate(authority: Authority, name: string, ...names: readonly string[]): Secret {
  const { certificate, key } = issueServer(authority, { names, nowMs: Date.now(), lifeMs: 3600_000 })
  return tlsSecret(name, certificate, key)
}

export function tlsSecret(name: string, certificate: string, key: string): Secret {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'default' },
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': base64(certificate), 'tls.key': base64(key) },
  }
}
