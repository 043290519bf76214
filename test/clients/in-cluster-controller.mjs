/**
 * A controller as people write them, with @kubernetes/client-node and the account of its pod: the holder of the Lease `keeper` keeps a ConfigMap for
 * each Deployment of its namespace, by an informer. Prints `leads`, `keeps NAME` and `drops NAME`. Arguments: its identity.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { AppsV1Api, CoordinationV1Api, CoreV1Api, KubeConfig, makeInformer, V1MicroTime } from '@kubernetes/client-node'

const [identity] = process.argv.slice(2)
/** As client-go's default: a process on a busy machine does not lose its lease. */
const leaseSeconds = 15
const name = 'keeper'
const namespace = readFileSync('/var/run/secrets/kubernetes.io/serviceaccount/namespace', 'utf8')
let clients = connect()

function connect() {
  const config = new KubeConfig()
  config.loadFromCluster()
  const [core, apps, leases] = [CoreV1Api, AppsV1Api, CoordinationV1Api].map((api) => config.makeApiClient(api))
  return { config, core, apps, leases }
}

/** The library keeps a token for a minute: one that was replaced is read again at once. */
async function ask(request) {
  try {
    return await request(clients)
  } catch (error) {
    if (error.code !== 401) throw error
    clients = connect()
    return await request(clients)
  }
}

/** True when this process holds the Lease. The resourceVersion lets one of two candidates win. */
async function acquire(seen) {
  const now = new V1MicroTime()
  const spec = { holderIdentity: identity, leaseDurationSeconds: leaseSeconds, renewTime: now }
  const lease = await ask(({ leases }) => leases.readNamespacedLease({ name, namespace })).catch((error) => {
    if (error.code !== 404) throw error
  })
  if (lease === undefined) {
    await ask(({ leases }) =>
      leases.createNamespacedLease({ namespace, body: { metadata: { name }, spec: { ...spec, acquireTime: now } } }),
    )
    return true
  }
  if (lease.metadata.resourceVersion !== seen.version)
    Object.assign(seen, { version: lease.metadata.resourceVersion, ms: performance.now() })
  const isOurs = lease.spec.holderIdentity === identity
  if (!isOurs && performance.now() - seen.ms < leaseSeconds * 1000) return false
  const changed = { ...lease, spec: { ...lease.spec, ...spec, ...(isOurs ? {} : { acquireTime: now }) } }
  await ask(({ leases }) => leases.replaceNamespacedLease({ name, namespace, body: changed }))
  return true
}

/** Makes the ConfigMap of this Deployment what it should be. */
async function reconcile(deployment, present) {
  const body = {
    metadata: { name: `kept-${deployment}` },
    data: { replicas: String(present?.spec?.replicas ?? 0), keeper: identity },
  }
  const key = { name: body.metadata.name, namespace }
  if (present === undefined) {
    await ask(({ core }) => core.deleteNamespacedConfigMap(key)).catch(ignore(404))
    return console.log('drops', deployment)
  }
  await ask(({ core }) => core.createNamespacedConfigMap({ namespace, body })).catch(async (error) => {
    ignore(409)(error)
    await ask(({ core }) => core.replaceNamespacedConfigMap({ ...key, body }))
  })
  console.log('keeps', deployment)
}

const ignore = (code) => (error) => {
  if (error.code !== code) throw error
}

const wanted = new Map()
const dirty = new Set()

function watch() {
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments`
  const list = () => ask(({ apps }) => apps.listNamespacedDeployment({ namespace }))
  const informer = makeInformer(clients.config, path, list)
  const take = (deployment) => {
    wanted.set(deployment.metadata.name, deployment)
    dirty.add(deployment.metadata.name)
  }
  informer.on('add', take)
  informer.on('update', take)
  informer.on('delete', ({ metadata }) => {
    wanted.delete(metadata.name)
    dirty.add(metadata.name)
  })
  const start = () => informer.start().catch(() => setTimeout(start, 500))
  informer.on('error', () => setTimeout(start, 500))
  return start()
}

process.on('SIGTERM', () => process.exit(0))
const seen = { version: '', ms: 0 }
let leads = false
for (;;) {
  try {
    const holds = await acquire(seen)
    if (holds && !leads) {
      console.log('leads')
      await watch()
    }
    leads ||= holds
    // A process that loses the Lease must not write any more.
    if (leads && !holds) process.exit(1)
    for (const one of leads ? [...dirty] : []) {
      dirty.delete(one)
      await reconcile(one, wanted.get(one)).catch((error) => {
        dirty.add(one)
        throw error
      })
    }
  } catch (error) {
    console.log('failed', error.code ?? error.message)
  }
  await delay(500)
}
