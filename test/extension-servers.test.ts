/** An extension server with the real kubectl, on a real controller that starts again in between: what the conformance test of Kubernetes asks. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { startExtensionServer, wardle } from '../broker-controller/testing/extension-server.ts'
import { reachableAddress as address, wardleName as name, wardleObjects } from './support/extension-service.ts'
import { startController, temporaryFolder } from './support/fleet.ts'
import { eventually } from './support/wait.ts'

const flunder = {
  apiVersion: `${wardle.group}/${wardle.version}`,
  kind: 'Flunder',
  metadata: { name: 'first', namespace: 'default', labels: { 'sample-label': 'true' } },
}
const rights = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: { name: 'flunders', namespace: 'default' },
  rules: [{ apiGroups: [wardle.group], resources: ['flunders'], verbs: ['get', 'list'] }],
}

test('kubectl works with kinds of an extension server', { skip: address === undefined && 'no address' }, async (t) => {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, 'controller')
  let controller = await startController(t, { dataDir })
  const kubectl = (...args: readonly string[]) => controller.kubectl(...args)
  const apply = (object: object) => controller.kubectlWith(JSON.stringify(object), 'apply', '-f', '-')
  const trusted = async () => {
    const map = 'configmap/extension-apiserver-authentication'
    const data = JSON.parse(await kubectl('get', '-n', 'kube-system', map, '-o', 'json')).data
    t.match(data, { 'requestheader-allowed-names': '["front-proxy-client"]', 'client-ca-file': /BEGIN CERTIFICATE/ })
    t.not(data['requestheader-client-ca-file'], data['client-ca-file'])
    return String(data['requestheader-client-ca-file'])
  }
  await kubectl('wait', '-n', 'kube-system', '--for=create', 'configmap/extension-apiserver-authentication')
  const proxyAuthority = await trusted()
  const server = await startExtensionServer({
    folder: join(folder, 'server'),
    names: ['api.wardle.svc'],
    proxyAuthority,
    address: address ?? '',
  })
  t.teardown(server.stop)
  for (const object of wardleObjects(server)) await apply(object)
  await kubectl('wait', '--for=condition=Available', `apiservice/${name}`, '--timeout=60s')
  t.match(await kubectl('get', 'apiservice', name), /NAME +SERVICE +AVAILABLE +AGE\n\S+ +wardle\/api +True/)
  t.match(await kubectl('get', 'apiservices'), /v1\.apps +Local +True/)
  const jsonpath = 'jsonpath={.status.conditions[0].message}'
  t.equal(await kubectl('get', 'apiservice', name, '-o', jsonpath), 'all checks passed')
  await eventually('the kinds are discovered', async () => {
    const listed = await kubectl('api-resources', '--cached=false', `--api-group=${wardle.group}`)
    return /flunders +fl +wardle\.example\.com\/v1alpha1 +true +Flunder/.test(listed)
  })
  t.match(await controller.kubectlWith(JSON.stringify(flunder), 'create', '-f', '-'), /first created/)
  t.match(await kubectl('get', 'flunders'), /first/)
  t.match(await kubectl('get', 'fl', 'first', '-o', 'name'), /flunder\.wardle\.example\.com\/first/)
  t.match(await kubectl('explain', 'flunder'), /A flunder for testing/)
  const { definitions } = JSON.parse(await kubectl('get', '--raw', '/openapi/v2'))
  t.ok(definitions['com.example.wardle.v1alpha1.Flunder'])
  t.ok(definitions['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta_v2'], 'that of the server is another one')

  const refused = await controller.tryKubectl('get', 'flunders', '--as=jane')
  t.match(refused, {
    code: 1,
    stderr: /User "jane" cannot list resource "flunders" in API group "wardle\.example\.com"/,
  })
  await apply(rights)
  await kubectl('create', 'rolebinding', 'jane', '--role=flunders', '--user=jane')
  t.match(await kubectl('get', 'flunders', '--as=jane'), /first/)
  t.match(server.seen.at(-1)?.headers, { 'x-remote-user': 'jane', 'x-remote-group': 'system:authenticated' })
  t.match(await kubectl('delete', 'flunder', 'first'), /deleted/)

  await kubectl('patch', 'apiservice', name, '--type=merge', '-p', '{"spec":{"versionPriority":400}}')
  t.equal(await kubectl('get', 'apiservice', name, '-o', 'jsonpath={.spec.versionPriority}'), '400')
  await kubectl('label', 'apiservice', name, 'e2e-apiservice=patched')
  const added = { op: 'add', path: '/status/conditions/-', value: { type: 'Mine', status: 'True', reason: 'E2E' } }
  const status = ['--subresource=status', '--type=json', '-p', JSON.stringify([added])]
  await kubectl('patch', 'apiservice', name, ...status)
  t.match(await kubectl('get', 'apiservice', name, '-o', 'jsonpath={.status.conditions[*].type}'), /Available Mine/)

  await controller.program.stop()
  controller = await startController(t, { dataDir })
  await kubectl('wait', '--for=condition=Available', `apiservice/${name}`, '--timeout=60s')
  t.equal(await trusted(), proxyAuthority, 'after a start')
  t.match(await controller.kubectlWith(JSON.stringify(flunder), 'create', '-f', '-'), /first created/)

  await collectedWithOwners(t, controller)
  const orphan = await owned(controller, 'flunder', 'first', configMap('kept'))
  t.match(orphan, /created/)

  await server.stop()
  await kubectl('wait', '--for=condition=Available=false', `apiservice/${name}`, '--timeout=120s')
  t.match(await kubectl('get', 'apiservice', name), /False \(FailedDiscoveryCheck\)/)
  t.match(await controller.tryKubectl('get', 'flunders'), { code: 1, stderr: /currently unable to handle the request/ })
  t.match(await kubectl('get', 'namespaces'), /wardle/, 'all else is answered')
  t.match(await kubectl('get', 'configmap', 'kept'), /kept/, 'its owner may be there')

  const metrics = join(folder, 'metrics.json')
  const service = { namespace: 'kube-system', name: 'metrics-server' }
  const spec = { group: 'metrics.k8s.io', version: 'v1beta1', groupPriorityMinimum: 100, versionPriority: 100, service }
  const metadata = { name: 'v1beta1.metrics.k8s.io' }
  await writeFile(
    metrics,
    JSON.stringify({ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata, spec }),
  )
  t.match(await controller.tryKubectl('apply', '--server-side', '--force-conflicts', '-f', metrics), {
    code: 1,
    stderr: /spec\.service: Forbidden: the kinds of metrics\.k8s\.io are served by the fleet itself/,
  })
  t.match(await kubectl('delete', 'apiservice', '-l', 'e2e-apiservice=patched'), /deleted/)
  t.match(await controller.tryKubectl('get', '--raw', `/apis/${wardle.group}`), { code: 1 })
})

type Controller = Awaited<ReturnType<typeof startController>>

const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } })

/** Makes the object, owned by what is there. */
async function owned(
  { kubectl, kubectlWith }: Controller,
  kind: string,
  name: string,
  object: { readonly metadata: object },
): Promise<string> {
  const owner = JSON.parse(await kubectl('get', kind, name, '-o', 'json'))
  const ownerReferences = [{ apiVersion: owner.apiVersion, kind: owner.kind, name, uid: owner.metadata.uid }]
  const body = { ...object, metadata: { ...object.metadata, ownerReferences } }
  return await kubectlWith(JSON.stringify(body), 'create', '-f', '-')
}

/** A ConfigMap owns a Flunder, which owns a ConfigMap. */
async function collectedWithOwners(t: Test, controller: Controller): Promise<void> {
  const { kubectl, kubectlWith } = controller
  await kubectlWith(JSON.stringify(configMap('top')), 'create', '-f', '-')
  const middle = { ...flunder, metadata: { ...flunder.metadata, name: 'middle' } }
  await owned(controller, 'configmap', 'top', middle)
  await owned(controller, 'flunder', 'middle', configMap('bottom'))
  t.match(await kubectl('get', 'configmap', 'bottom'), /bottom/)
  await kubectl('delete', 'configmap', 'top')
  await kubectl('wait', '--for=delete', 'configmap/bottom', '--timeout=60s')
  t.match(await controller.tryKubectl('get', 'flunder', 'middle'), { code: 1, stderr: /not found/ })
}
