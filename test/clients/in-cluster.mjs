/** For controllers with @kubernetes/client-node and the account of their pod: clients, and a Lease. */
import { readFileSync } from 'node:fs'
import { CoordinationV1Api, KubeConfig, V1MicroTime } from '@kubernetes/client-node'

/** As client-go's default: a process on a busy machine does not lose its lease. */
const leaseSeconds = 15
export const namespace = readFileSync('/var/run/secrets/kubernetes.io/serviceaccount/namespace', 'utf8')

/** `clientsOf` makes the clients of a KubeConfig. The library keeps a token for a minute: one that was replaced is read again at once. */
export function inCluster(clientsOf) {
  const connect = () => {
    const config = new KubeConfig()
    config.loadFromCluster()
    return { config, leases: config.makeApiClient(CoordinationV1Api), ...clientsOf(config) }
  }
  let clients = connect()
  return {
    config: clients.config,
    async ask(request) {
      try {
        return await request(clients)
      } catch (error) {
        if (error.code !== 401) throw error
        clients = connect()
        return await request(clients)
      }
    },
  }
}

/** Resolves to true when this process holds the Lease. Its resourceVersion lets one of two candidates win. */
export function leaseOf({ ask }, name, identity) {
  const seen = { version: '', ms: 0 }
  return async () => {
    const now = new V1MicroTime()
    const spec = { holderIdentity: identity, leaseDurationSeconds: leaseSeconds, renewTime: now }
    const lease = await ask(({ leases }) => leases.readNamespacedLease({ name, namespace })).catch(ignore(404))
    if (lease === undefined) {
      const body = { metadata: { name }, spec: { ...spec, acquireTime: now } }
      await ask(({ leases }) => leases.createNamespacedLease({ namespace, body }))
      return true
    }
    if (lease.metadata.resourceVersion !== seen.version)
      Object.assign(seen, { version: lease.metadata.resourceVersion, ms: performance.now() })
    const isOurs = lease.spec.holderIdentity === identity
    if (!isOurs && performance.now() - seen.ms < leaseSeconds * 1000) return false
    const body = { ...lease, spec: { ...lease.spec, ...spec, ...(isOurs ? {} : { acquireTime: now }) } }
    await ask(({ leases }) => leases.replaceNamespacedLease({ name, namespace, body }))
    return true
  }
}

export const ignore = (code) => (error) => {
  if (error.code !== code) throw error
}

/** Calls `take(object, isDeleted)` for each object, and for each of its changes. */
export function inform(informer, take) {
  informer.on('add', (object) => take(object, false))
  informer.on('update', (object) => take(object, false))
  informer.on('delete', (object) => take(object, true))
  const start = () => informer.start().catch(() => setTimeout(start, 500))
  informer.on('error', () => setTimeout(start, 500))
  return start()
}

/**
 * Runs until the process ends: `begin` once this process leads, and then `work` every half second. A process that loses the Lease ends, for
 * it must not write any more.
 */
export async function lead({ acquire, begin, work }) {
  process.on('SIGTERM', () => process.exit(0))
  for (let leads = false; ; await new Promise((resolve) => setTimeout(resolve, 500))) {
    try {
      const holds = await acquire()
      if (holds && !leads) {
        console.log('leads')
        await begin()
      }
      if (leads && !holds) process.exit(1)
      leads = holds
      if (leads) await work()
    } catch (error) {
      console.log('failed', error.code ?? '', error.message)
    }
  }
}
