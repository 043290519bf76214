/**
 * A controller as people write them, with @kubernetes/client-node and the account of its pod: the holder of the Lease `keeper` keeps a ConfigMap for
 * each Deployment of its namespace, by an informer. Prints `leads`, `keeps NAME` and `drops NAME`. Arguments: its identity.
 */
import { AppsV1Api, CoreV1Api, makeInformer } from '@kubernetes/client-node'
import { ignore, inCluster, inform, lead, leaseOf, namespace } from './in-cluster.mjs'

const [identity] = process.argv.slice(2)
const cluster = inCluster((config) => ({
  core: config.makeApiClient(CoreV1Api),
  apps: config.makeApiClient(AppsV1Api),
}))
const { ask } = cluster

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

const wanted = new Map()
const dirty = new Set()

await lead({
  acquire: leaseOf(cluster, 'keeper', identity),
  begin() {
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments`
    const list = () => ask(({ apps }) => apps.listNamespacedDeployment({ namespace }))
    return inform(makeInformer(cluster.config, path, list), (deployment, isDeleted) => {
      if (isDeleted) wanted.delete(deployment.metadata.name)
      else wanted.set(deployment.metadata.name, deployment)
      dirty.add(deployment.metadata.name)
    })
  },
  async work() {
    for (const one of [...dirty]) {
      dirty.delete(one)
      await reconcile(one, wanted.get(one)).catch((error) => {
        dirty.add(one)
        throw error
      })
    }
  },
})
