/**
 * An operator as people write them, with @kubernetes/client-node: the chart test/charts/operator installs it. Each of its pods answers the webhooks;
 * the holder of the Lease `site-operator` gives each Site a ConfigMap and a Deployment, by server-side apply, and writes its status. A Site that
 * is deleted is kept in a ConfigMap first. Environment: POD_NAME, POD_NAMESPACE, SERVICE, REFUSED_WORD, IMAGE; its certificate is in /tls.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import {
  ApiextensionsV1Api,
  AppsV1Api,
  CustomObjectsApi,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node'
import { inCluster, inform, lead, leaseOf } from './in-cluster.mjs'

const { POD_NAME, POD_NAMESPACE, SERVICE, REFUSED_WORD, IMAGE } = process.env
const manager = 'site-operator'
const finalizer = 'pages.example.com/keep'
const kind = { group: 'pages.example.com', version: 'v1', plural: 'sites' }
const file = (name) => readFileSync(`/tls/${name}`)

/** v1alpha1 has `spec.text`, v1 `spec.page.text`. */
function converted(site, apiVersion) {
  if (site.apiVersion === apiVersion) return site
  const { text, page, ...spec } = site.spec ?? {}
  const own = apiVersion.endsWith('/v1') ? { page: { text: text ?? '' } } : { text: page?.text }
  return { ...site, apiVersion, spec: { ...spec, ...own } }
}

const answers = {
  '/convert': ({ uid, desiredAPIVersion, objects }) => ({
    uid,
    result: { status: 'Success' },
    convertedObjects: objects.map((one) => converted(one, desiredAPIVersion)),
  }),
  '/validate': ({ uid, object }) => {
    const allowed = !object.spec.page.text.includes(REFUSED_WORD)
    return { uid, allowed, status: { code: 422, message: `spec.page.text contains ${REFUSED_WORD}` } }
  },
}

createServer({ cert: file('tls.crt'), key: file('tls.key') }, async (request, response) => {
  const answer = answers[new URL(request.url, 'https://host').pathname]
  if (answer === undefined) return response.end('ok')
  const parts = await request.toArray()
  const review = JSON.parse(Buffer.concat(parts).toString())
  response.setHeader('Content-Type', 'application/json')
  response.end(JSON.stringify({ ...review, request: undefined, response: answer(review.request) }))
}).listen(9443)

const cluster = inCluster((config) => ({
  apps: config.makeApiClient(AppsV1Api),
  definitions: config.makeApiClient(ApiextensionsV1Api),
  sites: config.makeApiClient(CustomObjectsApi),
  objects: KubernetesObjectApi.makeApiClient(config),
}))
const { ask } = cluster
const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch)
const serverSide = setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply)
const apply = (body) =>
  ask(({ objects }) => objects.patch(body, undefined, undefined, manager, true, PatchStrategy.ServerSideApply))

/** The definition comes from `crds/`, which has no templates: the authority is added here. */
function convert() {
  const service = { name: SERVICE, namespace: POD_NAMESPACE, path: '/convert' }
  const clientConfig = { service, caBundle: file('ca.crt').toString('base64') }
  const conversion = { strategy: 'Webhook', webhook: { clientConfig, conversionReviewVersions: ['v1'] } }
  const name = `${kind.plural}.${kind.group}`
  return ask(({ definitions }) =>
    definitions.patchCustomResourceDefinition({ name, body: { spec: { conversion } } }, merge),
  )
}

function objectsOf({ apiVersion, metadata: { name, namespace, uid }, spec }) {
  const owner = { apiVersion, kind: 'Site', name, uid, controller: true, blockOwnerDeletion: true }
  const metadata = { name, namespace, ownerReferences: [owner], labels: { [`${kind.group}/site`]: name } }
  const pages = [{ name: 'pages', mountPath: '/www' }]
  const command = ['httpd', '-f', '-p', '8080', '-h', '/www']
  const main = { name: 'page', image: IMAGE, imagePullPolicy: 'IfNotPresent', command, volumeMounts: pages }
  const pod = {
    terminationGracePeriodSeconds: 1,
    containers: [main],
    volumes: [{ name: 'pages', configMap: { name } }],
  }
  const template = { metadata: { labels: metadata.labels }, spec: pod }
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'index.html': spec.page.text } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: { replicas: spec.replicas, selector: { matchLabels: metadata.labels }, template },
    },
  ]
}

async function reconcile(site) {
  const { name, namespace, finalizers = [], deletionTimestamp, resourceVersion, generation } = site.metadata
  const key = { ...kind, name, namespace }
  const finalize = (finalizers) => {
    const body = { metadata: { resourceVersion, finalizers } }
    return ask(({ sites }) => sites.patchNamespacedCustomObject({ ...key, body }, merge))
  }
  if (deletionTimestamp !== undefined) {
    if (!finalizers.includes(finalizer)) return
    const data = { text: site.spec.page.text }
    await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${name}-kept`, namespace }, data })
    await finalize(finalizers.filter((one) => one !== finalizer))
    return
  }
  if (!finalizers.includes(finalizer)) return await finalize([...finalizers, finalizer]) // its change comes back here
  let deployment
  for (const object of objectsOf(site)) deployment = await apply(object)
  const readyReplicas = deployment.status?.readyReplicas ?? 0
  const isReady = readyReplicas === site.spec.replicas
  const before = site.status?.conditions?.find(({ type }) => type === 'Ready')
  const condition = {
    type: 'Ready',
    status: isReady ? 'True' : 'False',
    reason: isReady ? 'PodsReady' : 'PodsStart',
    message: `${readyReplicas} of ${site.spec.replicas} pods are ready`,
  }
  const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : new Date().toISOString()
  const status = { observedGeneration: generation, readyReplicas, conditions: [{ ...condition, lastTransitionTime }] }
  const body = { apiVersion: site.apiVersion, kind: 'Site', metadata: { name, namespace }, status }
  await ask(({ sites }) =>
    sites.patchNamespacedCustomObjectStatus({ ...key, body, fieldManager: manager, force: true }, serverSide),
  )
}

const present = new Map()
const dirty = new Set()
const enqueue = (namespace, name) => dirty.add(`${namespace}/${name}`)

await lead({
  acquire: leaseOf(cluster, manager, POD_NAME),
  async begin() {
    await convert()
    const { group, version, plural } = kind
    const sites = makeInformer(cluster.config, `/apis/${group}/${version}/${plural}`, () =>
      ask(({ sites }) => sites.listCustomObjectForAllNamespaces({ group, version, plural })),
    )
    await inform(sites, (site, isDeleted) => {
      const { namespace, name } = site.metadata
      if (isDeleted) return present.delete(`${namespace}/${name}`)
      present.set(`${namespace}/${name}`, site)
      enqueue(namespace, name)
    })
    const labelSelector = `${group}/site`
    const list = () => ask(({ apps }) => apps.listDeploymentForAllNamespaces({ labelSelector }))
    const deployments = makeInformer(cluster.config, '/apis/apps/v1/deployments', list, labelSelector)
    await inform(deployments, ({ metadata }) => enqueue(metadata.namespace, metadata.labels[labelSelector]))
  },
  async work() {
    for (const key of [...dirty]) {
      dirty.delete(key)
      const site = present.get(key)
      if (site === undefined) continue
      await reconcile(site).catch((error) => {
        dirty.add(key)
        throw error
      })
    }
  },
})
