/** A server on this machine behind a Service of a fleet, and behind an APIService. */
import { networkInterfaces } from 'node:os'
import { wardle } from '../../broker-controller/testing/extension-server.ts'

/** Endpoints have no loopback addresses; undefined: this machine has no other. */
export const reachableAddress = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address

/** A Service without a selector, as for a server outside of the fleet, in a namespace of its own. */
export function outsideService(namespace: string, name: string, port: number, ip = reachableAddress ?? '') {
  const metadata = { name, namespace }
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 443, targetPort: port }] } },
    { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets: [{ addresses: [{ ip }], ports: [{ port }] }] },
  ]
}

export const wardleName = `${wardle.version}.${wardle.group}`

/** The objects by which the server at this port answers for `wardle`, as `api.wardle.svc`. */
export function wardleObjects({ port, caBundle }: { readonly port: number; readonly caBundle: string }) {
  const service = { namespace: 'wardle', name: 'api' }
  const spec = { ...wardle, groupPriorityMinimum: 2000, versionPriority: 200, caBundle, service }
  return [
    ...outsideService('wardle', 'api', port),
    { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name: wardleName }, spec },
  ]
}
