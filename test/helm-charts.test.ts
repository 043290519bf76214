/** The real helm with charts of the usual shapes (`test/charts/`), and kubectl with a kustomization, against a fleet on Docker. */
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { whyNoDockerd } from './support/dockerd.ts'
import type { Controller } from './support/fleet.ts'
import { charts, type Helm, helmOf, whyNoHelm } from './support/helm.ts'
import { type JoinedFleet, joinedFleet } from './support/joined-fleet.ts'
import { nodeOfThisMachine } from './support/node-pods.ts'
import { eventually } from './support/wait.ts'

type Parts = Helm & {
  readonly fleet: JoinedFleet
  readonly controller: Controller
  /** kubectl in this namespace. */
  within(namespace: string): Controller['kubectl']
}

const wait = ['--wait', '--timeout=80s']

test('charts install, change and go with helm', { skip: whyNoDockerd() || whyNoHelm() }, async (t) => {
  const fleet = await joinedFleet(t, { isReachable: true })
  const { controller } = fleet
  await fleet.startReady()
  const parts: Parts = {
    ...(await helmOf(controller, fleet.folder)),
    ...{ fleet, controller },
    within:
      (namespace) =>
      (...args) =>
        controller.kubectl('-n', namespace, ...args),
  }
  await t.test('a web application with an Ingress, an autoscaler and hooks', (t) => webApplication(t, parts))
  await t.test('an upgrade that fails is rolled back', (t) => failedUpgrades(t, parts))
  await t.test('a database, and its backup', (t) => database(t, parts))
  await t.test('an exporter on each machine', (t) => exporter(t, parts))
  await t.test('an operator with a kind of its own', (t) => operator(t, parts))
  await t.test('a kustomization', (t) => kustomization(t, parts))
})

async function webApplication(t: Test, { helm, tryHelm, within }: Parts): Promise<void> {
  const chart = join(charts, 'web')
  const kubectl = within('shop')
  const page = () => kubectl('get', 'configmap', 'web', '-o', 'jsonpath={.data.index\\.html}')
  const install = ['install', 'web', chart, '-n', 'shop', '--create-namespace']

  t.match(await tryHelm(...install, '--set', 'page=1'), { code: 1, stderr: /page: Invalid type.*string/ })
  t.match(await helm(...install, '--dry-run=server'), /STATUS: pending-install.*kind: HorizontalPodAutoscaler/s)
  t.equal((await helm('list', '-A', '-q')).trim(), '', 'nothing is written')

  t.match(await helm(...install, ...wait), /STATUS: deployed.*http:\/\/web\.example\//s)
  t.equal(await kubectl('get', 'deployment', 'web', '-o', 'jsonpath={.status.readyReplicas}'), '1')
  t.match(await kubectl('get', 'ingress,hpa'), /ingress\S+\/web +bramble +web\.example .*Deployment\/web/s)
  const migration = ['get', 'job', 'web-migration', '-o']
  t.equal(await kubectl(...migration, 'jsonpath={.status.succeeded}'), '1', 'the hook ran before')
  const uid = await kubectl(...migration, 'jsonpath={.metadata.uid}')
  const secret = () => kubectl('get', 'secret', 'web', '-o', 'jsonpath={.data.password}')
  const password = await secret()

  t.match(await tryHelm(...install), { code: 1, stderr: /cannot re-use a name that is still in use/ })
  t.match(await helm('upgrade', 'web', chart, '-n', 'shop', '--set', 'page=second', ...wait), /REVISION: 2/)
  t.equal(await page(), 'second\n')
  t.equal(await secret(), password, 'lookup finds the Secret')
  t.not(await kubectl(...migration, 'jsonpath={.metadata.uid}'), uid, 'the hook is replaced')
  const tested = await helm('test', 'web', '-n', 'shop', '--logs', '--timeout=80s')
  t.match(tested, /TEST SUITE: +web-page.*Phase: +Succeeded.*second/s)
  t.match(await helm('get', 'manifest', 'web', '-n', 'shop'), /index\.html: \|\n +second/)
  t.match(await helm('get', 'values', 'web', '-n', 'shop'), /page: second/)
  t.match(await helm('get', 'hooks', 'web', '-n', 'shop'), /web-migration/)
  t.match(await helm('list', '-A'), /^web\s+shop\s+2\s.*deployed\s+web-1\.0\.0\s+1/m)
  t.match(await kubectl('get', 'secrets'), /sh\.helm\.release\.v1\.web\.v2 +helm\.sh\/release\.v1/)

  t.match(await helm('rollback', 'web', '1', '-n', 'shop', ...wait), /Rollback was a success/)
  t.equal(await page(), 'hello\n')
  t.match(await helm('history', 'web', '-n', 'shop'), /1.*superseded.*\n2.*superseded.*\n3.*deployed.*Rollback to 1/)
}

async function failedUpgrades(t: Test, { helm, tryHelm, within }: Parts): Promise<void> {
  const kubectl = within('shop')
  const upgrade = ['upgrade', 'web', join(charts, 'web'), '-n', 'shop', '--atomic', '--set']
  t.match(await tryHelm(...upgrade, 'migration.command=exit 3', '--timeout=80s'), {
    code: 1,
    stderr: /rolled back due to atomic being set: pre-upgrade hooks failed: .*BackoffLimitExceeded/s,
  })
  t.match(await tryHelm(...upgrade, 'image.tag=missing', '--timeout=15s'), {
    code: 1,
    stderr: /rolled back due to atomic being set: context deadline exceeded/,
  })
  const image = ['get', 'deployment', 'web', '-o', 'jsonpath={.spec.template.spec.containers[0].image}']
  t.equal(await kubectl(...image), 'test/busybox:1')
  const pods = await kubectl('get', 'pods', '-l', 'app.kubernetes.io/name=web', '--no-headers')
  t.match(pods, /^\S+ +1\/1 +Running/, 'the pod of the revision before runs')
  t.match(await helm('status', 'web', '-n', 'shop'), /STATUS: deployed\nREVISION: 7/)
  t.match(await helm('history', 'web', '-n', 'shop'), /4.*failed.*\n5.*superseded.*\n6.*failed.*\n7.*deployed/)

  t.match(await helm('uninstall', 'web', '-n', 'shop', '--keep-history', ...wait), /uninstalled/)
  t.match(await helm('list', '-n', 'shop', '--uninstalled', '-q'), /^web$/m)
  await gone(kubectl, 'deployments,services,ingresses,hpa,secrets,configmaps,pods', '-l', 'helm.sh/chart')
  t.match(await helm('uninstall', 'web', '-n', 'shop'), /uninstalled/)
  t.equal(await kubectl('get', 'secrets', '-l', 'owner=helm', '-o', 'name'), '', 'with its history')
}

async function database(t: Test, { helm, tryHelm, within, fleet }: Parts): Promise<void> {
  const kubectl = within('default')
  const chart = join(charts, 'database')
  const claims = () => kubectl('get', 'pvc', '-o', 'jsonpath={.items[*].metadata.name}')
  const password = (word: string) => ['--set', `password=${word}`]
  await helm('install', 'db', chart, ...password('one'), ...wait)
  t.equal(await kubectl('get', 'sts', 'db', '-o', 'jsonpath={.status.readyReplicas}'), '1')
  t.equal(await claims(), 'data-db-0 db-dumps')

  await helm('install', 'nightly', join(charts, 'backup'), '--set', 'claim=data-db-0', ...wait.slice(1))
  t.match(await kubectl('get', 'cronjob', 'nightly'), /nightly +30 3 \* \* \* +Europe\/Berlin +False/)
  await kubectl('create', 'job', 'now', '--from=cronjob/nightly')
  await kubectl('wait', '--for=condition=Complete', 'job/now', '--timeout=80s')
  t.match(await kubectl('logs', 'job/now'), /\.\/starts/)
  t.match(await tryHelm('install', 'other', join(charts, 'backup')), { code: 1, stderr: /claim: of the data/ })

  t.match(await helm('uninstall', 'db', 'nightly', ...wait), /kept due to the resource policy:\n\[Persistent.*db-dumps/)
  t.equal(await claims(), 'data-db-0 db-dumps', 'the data stays')
  await helm('install', 'db', chart, ...password('two'), ...wait)
  const volume = await kubectl('get', 'pvc', 'data-db-0', '-o', 'jsonpath={.spec.volumeName}')
  const starts = join(fleet.dataDir(), 'volumes', `default_data-db-0_${volume}`, 'starts')
  t.equal(await readFile(starts, 'utf8'), 'one\ntwo\n')
}

async function exporter(t: Test, { helm, within }: Parts): Promise<void> {
  const kubectl = within('monitoring')
  const chart = join(charts, 'exporter')
  const install = ['upgrade', '--install', 'exporter', chart, '-n', 'monitoring', '--create-namespace', ...wait]
  t.match(await helm(...install), /does not exist\. Installing it now/)
  await kubectl('rollout', 'status', 'ds/exporter', '--timeout=80s')
  t.match(await kubectl('get', 'ds'), /exporter +1 +1 +1 +1 +1 +kubernetes\.io\/os=linux/)
  const metrics = ['get', '--raw', '/api/v1/namespaces/monitoring/services/exporter:metrics/proxy/metrics']
  t.match(await kubectl(...metrics), /^[\d.]+ [\d.]+/)
  t.match(await helm(...install, '--reuse-values', '--set', 'port=9101'), /REVISION: 2/)
  await kubectl('rollout', 'status', 'ds/exporter', '--timeout=80s')
  t.match(await kubectl('get', 'pods', '-o', 'jsonpath={.items[*].spec.containers[*].ports}'), /"containerPort":9101/)
  t.match(await kubectl(...metrics), /^[\d.]+ [\d.]+/)
  t.match(await helm('uninstall', 'exporter', '-n', 'monitoring', ...wait), /uninstalled/)
  await gone(kubectl, 'ds,svc,pods')
}

async function operator(t: Test, { helm, within, controller, fleet }: Parts): Promise<void> {
  const kubectl = within('default')
  const { image, command, volumes, volumeMounts } = nodeOfThisMachine('site-operator.mjs')
  const values = join(fleet.folder, 'operator.json')
  const pods = { extraVolumes: volumes, extraVolumeMounts: volumeMounts }
  await writeFile(values, JSON.stringify({ image, command, ...pods }))
  const chart = [join(charts, 'operator'), '-n', 'operators', '-f', values, ...wait]
  t.match(await helm('install', 'sites', '--create-namespace', ...chart), /STATUS: deployed/)
  const definition = ['get', 'crd', 'sites.pages.example.com', '-o']
  await eventually(
    'the leader has set the webhook that converts',
    async () => (await kubectl(...definition, 'jsonpath={.spec.conversion.strategy}')) === 'Webhook',
  )

  const site = (name: string, version: string, spec: object, metadata: object = {}) =>
    JSON.stringify({ apiVersion: `pages.example.com/${version}`, kind: 'Site', metadata: { name, ...metadata }, spec })
  const apply = (manifest: string) => controller.kubectlWith(manifest, 'apply', '-f', '-')
  await apply(site('home', 'v1alpha1', { text: 'at home' }))
  await kubectl('wait', '--for=condition=Ready', 'site/home', '--timeout=80s')
  t.match(await kubectl('get', 'si'), /NAME +READY +REPLICAS\nhome +True +1/)
  t.equal(await kubectl('get', 'site', 'home', '-o', 'jsonpath={.spec.page.text}'), 'at home')
  t.equal(await kubectl('get', 'configmap', 'home', '-o', 'jsonpath={.data.index\\.html}'), 'at home')
  const managers = 'jsonpath={range .metadata.managedFields[*]}{.manager} {.operation} {.subresource}{"\\n"}{end}'
  t.match(await kubectl('get', 'site', 'home', '-o', managers), /^site-operator Apply status$/m)
  await kubectl('scale', 'site/home', '--replicas=2')
  await kubectl('wait', '--for=jsonpath={.status.readyReplicas}=2', 'site/home', '--timeout=80s')

  const lorem = { page: { text: 'lorem ipsum' } }
  await t.rejects(
    apply(site('other', 'v1', lorem)),
    /admission webhook "sites\.pages\.example\.com" denied the request: spec\.page\.text contains lorem/,
  )
  t.match(
    await apply(site('other', 'v1', lorem, { labels: { draft: '' } })),
    /created/,
    'its condition leaves drafts out',
  )
  await t.rejects(apply(site('home', 'v1', { page: { text: '' }, replicas: 6 })), /at most 5 replicas/)
  await kubectl('create', 'rolebinding', 'jane', '--clusterrole=edit', '--user=jane')
  t.equal((await kubectl('auth', 'can-i', 'create', 'sites', '--as=jane')).trim(), 'yes', 'its role is part of edit')

  const authority = await kubectl(...definition, 'jsonpath={.spec.conversion.webhook.clientConfig.caBundle}')
  t.match(await helm('upgrade', 'sites', ...chart, '--set', 'refusedWord=dolor'), /REVISION: 2/)
  // helm waits for the new pods, and not for the end of the old ones.
  await eventually('the new pods answer', () => apply(site('third', 'v1', lorem)))
  await kubectl('wait', '--for=condition=Ready', 'site/third', '--timeout=80s')
  t.equal(await kubectl(...definition, 'jsonpath={.spec.conversion.webhook.clientConfig.caBundle}'), authority)

  const page = [
    'upgrade',
    '--install',
    'page',
    join(charts, 'web'),
    '--no-hooks',
    '--set',
    'site.enabled=true',
    '--set',
  ]
  const text = () => kubectl('get', 'site', 'page-web-site', '-o', 'jsonpath={.spec.page.text} {.spec.replicas}')
  await helm(...page, 'page=one')
  await kubectl('scale', 'site/page-web-site', '--replicas=2')
  await helm(...page, 'page=two')
  t.equal(await text(), 'two 2', 'an upgrade changes what the chart has, and keeps what it leaves out')
  await kubectl('wait', '--for=jsonpath={.status.readyReplicas}=2', 'site/page-web-site', '--timeout=80s')
  t.match(await helm('uninstall', 'page', ...wait), /uninstalled/)

  await kubectl('delete', 'sites', '--all', '--timeout=80s')
  t.equal(await kubectl('get', 'configmap', 'home-kept', '-o', 'jsonpath={.data.text}'), 'at home', 'by its finalizer')
  await kubectl('wait', '--for=delete', 'deployment/home', 'configmap/home', '--timeout=80s')
  t.match(await helm('uninstall', 'sites', '-n', 'operators', ...wait), /uninstalled/)
  t.match(await kubectl(...definition, 'name'), /sites/, 'helm leaves what is in crds/')
  await kubectl('delete', 'crd', 'sites.pages.example.com', '--timeout=80s')
}

async function kustomization(t: Test, { controller, within, fleet }: Parts): Promise<void> {
  const kubectl = within('house')
  const copy = join(fleet.folder, 'gitops')
  await cp(join(charts, 'gitops'), copy, { recursive: true })
  const folder = join(copy, 'house')
  const apply = ['apply', '-k', folder, '--prune', '-l', 'app.kubernetes.io/part-of=house']
  const prune = () => controller.kubectl(...apply, '--prune-allowlist=core/v1/ConfigMap')
  const colour = async () => {
    await kubectl('rollout', 'status', 'deployment/the-page', '--timeout=80s')
    return await kubectl('exec', 'deployment/the-page', '--', 'sh', '-c', 'echo $colour')
  }
  t.match(await prune(), /namespace\/house created[\s\S]*deployment\S+\/the-page created/)
  t.equal(await colour(), 'red\n')
  t.equal(await controller.kubectl('diff', '-k', folder), '', 'nothing differs afterwards')
  const file = join(folder, 'kustomization.yaml')
  await writeFile(file, (await readFile(file, 'utf8')).replace('colour=red', 'colour=green'))
  t.match(await prune(), /the-page configured[\s\S]*configmap\/the-settings-\w+ pruned/)
  await eventually('the new pod is the one that answers', async () => (await colour()) === 'green\n')
  t.match(await controller.kubectl('apply', '--server-side', '--force-conflicts', '-k', folder), /serverside-applied/)
  const end = ['delete', '-k', folder, '--ignore-not-found', '--timeout=80s']
  t.match(await controller.kubectl(...end), /namespace "house" deleted/)
}

/** What has ended is deleted a moment after its owner. */
async function gone(kubectl: Controller['kubectl'], ...kinds: readonly string[]): Promise<void> {
  await eventually(`${kinds} are gone`, async () => (await kubectl('get', ...kinds, '-o', 'name')) === '')
}
