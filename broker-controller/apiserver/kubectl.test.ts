import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { aNode } from '../../api/testing/builders.ts'
import { rfc3339, rfc3339Micro } from '../../daemon/clock.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { type ApiUnderTest, type Ran, startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

/** The real kubectl 1.32 against the API: what people type, and what they see. */

const podManifest = (name: string, image = 'busybox:1.36', labels = '{app: web}') => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, labels: ${labels}}
spec:
  nodeName: pi-01
  containers: [{name: main, image: "${image}", ports: [{containerPort: 80}]}]
`

async function populate({ store }: ApiUnderTest): Promise<void> {
  const now = Date.now()
  const { metadata, ...node } = aNode({ name: 'pi-01' })
  await store.create('nodes', { ...node, metadata: { name: 'pi-01', labels: metadata.labels ?? {} } })
  await store.create('nodes', {
    ...node,
    metadata: { name: 'pi-02', labels: { 'node-role.kubernetes.io/storage': '' } },
  })
  await store.create('leases', {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'pi-01', namespace: 'kube-node-lease' },
    spec: { holderIdentity: 'pi-01', leaseDurationSeconds: 40, renewTime: rfc3339Micro(now) },
  })
  await store.create('events', {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'pi-01.1', namespace: 'default' },
    involvedObject: { kind: 'Node', name: 'pi-01', uid: 'pi-01', apiVersion: 'v1' },
    reason: 'NodeReady',
    message: 'Node pi-01 status is now: NodeReady',
    type: 'Normal',
    count: 1,
    source: { component: 'bramble' },
    firstTimestamp: rfc3339(now),
    lastTimestamp: rfc3339(now),
  })
}

/** Names the columns and rows of a table by cutting at the blanks kubectl aligns with. */
const rows = ({ stdout }: Ran) =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/\s{2,}/))

test('kubectl', { skip: whyNoKubectl() }, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  await populate(api)
  const { kubectl } = api
  const ok = async (args: readonly string[], input?: string) => {
    const ran = await kubectl(args, input === undefined ? {} : { input })
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.code === 0 ? '' : ran.stderr}`)
    return ran
  }

  await t.test('reads version, discovery, health and metrics', async (t) => {
    const [version, kinds, health, ready] = await Promise.all([
      ok(['version', '-o', 'json']),
      ok(['api-resources']),
      ok(['get', '--raw', '/healthz']),
      ok(['get', '--raw', '/readyz?verbose']),
    ])
    const metrics = await ok(['get', '--raw', '/metrics']) // when other requests are counted
    t.match(JSON.parse(version.stdout), {
      serverVersion: { major: '1', minor: '32', gitVersion: /^v1\.32\.4-bramble/ },
    })
    for (const kind of [/^nodes +no +v1 +false +Node$/m, /^leases +coordination.k8s.io\/v1 +true +Lease$/m]) {
      t.match(kinds.stdout, kind)
    }
    t.match(kinds.stdout, /^certificatesigningrequests +csr +certificates.k8s.io\/v1 +false/m)
    t.equal(health.stdout, 'ok')
    t.match(ready.stdout, '[+]store ok\nreadyz check passed')
    t.match(metrics.stdout, /^apiserver_request_total\{/m)
  })

  await t.test('shows nodes, leases, events and requests as tables', async (t) => {
    const [nodes, wide, leases, events, requests, labels] = await Promise.all([
      ok(['get', 'nodes']),
      ok(['get', 'no', '-o', 'wide']),
      ok(['get', 'leases', '-A']),
      ok(['get', 'events']),
      ok(['get', 'csr']),
      ok(['get', 'nodes', '--show-labels', '--no-headers']),
    ])
    t.match(rows(nodes), [
      ['NAME', 'STATUS', 'ROLES', 'AGE', 'VERSION'],
      ['pi-01', 'Ready', '<none>', /^\d+s$/, 'v1.32.4-bramble'],
      ['pi-02', 'Ready', 'storage'],
    ])
    t.match(rows(wide)[0], ['NAME', 'STATUS', 'ROLES', 'AGE', 'VERSION', 'INTERNAL-IP', 'EXTERNAL-IP', 'OS-IMAGE'])
    t.match(rows(wide)[1], { 5: '192.0.2.11', 6: '<none>', 7: 'Debian GNU/Linux 12 (bookworm)', 9: 'docker://27.3.1' })
    t.match(rows(leases), [
      ['NAMESPACE', 'NAME', 'HOLDER', 'AGE'],
      ['kube-node-lease', 'pi-01', 'pi-01'],
    ])
    t.match(rows(events), [
      ['LAST SEEN', 'TYPE', 'REASON', 'OBJECT', 'MESSAGE'],
      [/s$/, 'Normal', 'NodeReady', 'node/pi-01'],
    ])
    t.match(requests.stderr, 'No resources found')
    t.match(labels.stdout, /kubernetes.io\/hostname=pi-01/)
  })

  await t.test('shows objects whole, in part, and those that were chosen', async (t) => {
    const [yaml, json, path, label, field, sorted, chunks, name] = await Promise.all([
      ok(['get', 'node', 'pi-01', '-o', 'yaml']),
      ok(['get', 'nodes', '-o', 'json']),
      ok(['get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}']),
      ok(['get', 'nodes', '-l', 'kubernetes.io/hostname in (pi-01)', '-o', 'name']),
      ok(['get', 'nodes', '--field-selector', 'metadata.name!=pi-01', '-o', 'name']),
      ok(['get', 'nodes', '--sort-by', '{.metadata.name}', '--no-headers']),
      ok(['get', 'nodes', '--chunk-size', '1', '-o', 'name']),
      ok(['get', 'ns,nodes', '-o', 'name']),
    ])
    t.match(yaml.stdout, /^kind: Node$/m)
    t.match(JSON.parse(json.stdout), { kind: 'List', items: [{ kind: 'Node' }, { kind: 'Node' }] })
    t.equal(path.stdout, 'pi-01 pi-02')
    t.equal(label.stdout, 'node/pi-01\n')
    t.equal(field.stdout, 'node/pi-02\n')
    t.match(rows(sorted), [['pi-01'], ['pi-02']])
    t.equal(chunks.stdout, 'node/pi-01\nnode/pi-02\n')
    t.match(name.stdout, /^namespace\/default\n(.|\n)*node\/pi-02\n$/)
  })

  await t.test('creates, applies, shows and deletes a pod', async (t) => {
    t.equal((await ok(['create', '-f', '-'], podManifest('made'))).stdout, 'pod/made created\n')
    t.equal((await ok(['apply', '-f', '-'], podManifest('web'))).stdout, 'pod/web created\n')
    t.equal((await ok(['apply', '-f', '-'], podManifest('web'))).stdout, 'pod/web unchanged\n')
    const changed = podManifest('web', 'busybox:1.37', '{app: web, tier: front}')
    t.equal((await ok(['apply', '-f', '-'], changed)).stdout, 'pod/web configured\n')
    const [pods, wide, yaml, all, described] = await Promise.all([
      ok(['get', 'pods']),
      ok(['get', 'pods', '-A', '-o', 'wide']),
      ok(['get', 'pod', 'web', '-o', 'json']),
      ok(['get', 'all', '-o', 'name']),
      ok(['describe', 'pod', 'web']),
    ])
    t.match(rows(pods), [
      ['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE'],
      ['made', '0/1', 'Pending', '0'],
      ['web', '0/1', 'Pending', '0'],
    ])
    t.match(rows(wide)[1], ['default', 'made', '0/1', 'Pending', '0', /s$/, '<none>', 'pi-01', '<none>', '<none>'])
    t.match(JSON.parse(yaml.stdout), {
      metadata: { labels: { app: 'web', tier: 'front' } },
      spec: { containers: [{ image: 'busybox:1.37', ports: [{ containerPort: 80, protocol: 'TCP' }] }] },
    })
    t.match(all.stdout, /^pod\/made/)
    for (const line of [
      /^Name: +web$/m,
      /^Node: +pi-01\/?$/m,
      /^Status: +Pending$/m,
      /Image: +busybox:1.37/,
      /Port: +80\/TCP/,
    ]) {
      t.match(described.stdout, line)
    }
    const [first, second] = await Promise.all([
      ok(['delete', 'pod', 'made', '--grace-period', '0', '--force']),
      ok(['delete', 'pod', 'web', '--wait=false']),
    ])
    t.match(first.stdout, /pod "made" force deleted/)
    t.equal(second.stdout, 'pod "web" deleted\n')
    t.match(rows(await ok(['get', 'pods', '--no-headers'])), [['web', '0/1', 'Terminating']])
    const waiting = api.watching(['delete', 'pod', 'web'])
    await waiting.seen('pod "web" deleted')
    await api.store.delete('pods', { namespace: 'default', name: 'web' })
    t.match(await waiting.ended(), { code: 0, stdout: 'pod "web" deleted\n' })
  })

  await t.test('applies a list of objects, and a changed one of them', async (t) => {
    const manifest = (value: string) => `
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: listed}, data: {a: "${value}"}}
  - {apiVersion: v1, kind: Secret, metadata: {name: hidden}, stringData: {a: hunter2}}
`
    t.equal((await ok(['apply', '-f', '-'], manifest('1'))).stdout, 'configmap/listed created\nsecret/hidden created\n')
    const again = await ok(['apply', '-f', '-'], manifest('2'))
    t.match(again.stdout, /^configmap\/listed configured\n/)
    const [table, secret, diff] = await Promise.all([
      ok(['get', 'cm,secret']),
      ok(['get', 'secret', 'hidden', '-o', 'jsonpath={.data.a}']),
      kubectl(['diff', '-f', '-'], { input: manifest('3') }),
    ])
    t.match(table.stdout, /^configmap\/listed +1 /m)
    t.match(table.stdout, /^secret\/hidden +Opaque +1 /m)
    t.equal(secret.stdout, Buffer.from('hunter2').toString('base64'))
    t.equal(diff.code, 1)
    t.match(diff.stdout, /^\+ +a: "3"$/m)
    t.match(
      (await ok(['delete', '-f', '-'], manifest('2'))).stdout,
      /configmap "listed" deleted\nsecret "hidden" deleted/,
    )
  })

  await t.test('replaces and edits by patch', async (t) => {
    const manifest = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: replaced}\ndata: {a: "1"}\n'
    await ok(['create', '-f', '-'], manifest)
    t.equal((await ok(['replace', '-f', '-'], manifest.replace('"1"', '"2"'))).stdout, 'configmap/replaced replaced\n')
    const merged = await ok(['patch', 'cm', 'replaced', '--type', 'merge', '-p', '{"data":{"b":"3"}}'])
    t.equal(merged.stdout, 'configmap/replaced patched\n')
    const same = await ok(['patch', 'cm', 'replaced', '--type', 'merge', '-p', '{"data":{"b":"3"}}'])
    t.equal(same.stdout, 'configmap/replaced patched (no change)\n')
    await ok(['patch', 'cm', 'replaced', '--type', 'json', '-p', '[{"op":"remove","path":"/data/b"}]'])
    t.equal((await ok(['get', 'cm', 'replaced', '-o', 'jsonpath={.data}'])).stdout, '{"a":"2"}')
  })

  await t.test('labels, annotates, taints and cordons nodes', async (t) => {
    t.equal((await ok(['label', 'node', 'pi-02', 'site=attic'])).stdout, 'node/pi-02 labeled\n')
    t.equal((await ok(['annotate', 'node', 'pi-02', 'note=warm'])).stdout, 'node/pi-02 annotated\n')
    t.equal((await ok(['taint', 'node', 'pi-02', 'dedicated=db:NoSchedule'])).stdout, 'node/pi-02 tainted\n')
    t.equal((await ok(['cordon', 'pi-02'])).stdout, 'node/pi-02 cordoned\n')
    t.equal((await ok(['cordon', 'pi-02'])).stdout, 'node/pi-02 already cordoned\n')
    const node = JSON.parse((await ok(['get', 'node', 'pi-02', '-o', 'json'])).stdout)
    t.match(node, {
      metadata: { labels: { site: 'attic' }, annotations: { note: 'warm' } },
      spec: { unschedulable: true, taints: [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }] },
    })
    t.match(rows(await ok(['get', 'node', 'pi-02', '--no-headers'])), [['pi-02', 'Ready,SchedulingDisabled']])
    t.equal((await ok(['uncordon', 'pi-02'])).stdout, 'node/pi-02 uncordoned\n')
    t.equal((await ok(['taint', 'node', 'pi-02', 'dedicated-'])).stdout, 'node/pi-02 untainted\n')
    await ok(['label', 'node', 'pi-02', 'site-'])
    const after = JSON.parse((await ok(['get', 'node', 'pi-02', '-o', 'json'])).stdout)
    t.notMatch(after, { metadata: { labels: { site: 'attic' } } })
    t.notOk(after.spec?.taints ?? after.spec?.unschedulable)
  })

  await t.test('describes a node with its lease, its pods and what happened to it', async (t) => {
    await ok(['create', '-f', '-'], podManifest('described'))
    const { stdout } = await ok(['describe', 'node', 'pi-01'])
    for (const line of [
      /^Name: +pi-01$/m,
      /HolderIdentity: +pi-01/,
      /RenewTime: +\w{3}, /,
      /^ +Ready +True +/m,
      /InternalIP: +192\.0\.2\.11/,
      /Non-terminated Pods: +\(1 in total\)/,
      /^ +default +described /m,
      /Normal +NodeReady +\S+ .*Node pi-01 status is now: NodeReady/,
    ]) {
      t.match(stdout, line)
    }
    await ok(['delete', 'pod', 'described', '--now', '--wait=false'])
  })

  await t.test('watches', async (t) => {
    const nodes = api.watching(['get', 'node', 'pi-02', '-w', '--no-headers'])
    const maps = api.watching(['get', 'cm', '-w', '--output-watch-events', '-l', 'watched=yes'])
    await nodes.seen('pi-02')
    await api.watched(2)
    const map = (name: string, labels: object) =>
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels } })
    await ok(['apply', '-f', '-'], map('seen', { watched: 'yes' }))
    await maps.seen('ADDED      seen')
    await ok(['apply', '-f', '-'], map('unseen', {}))
    await ok(['label', 'cm', 'seen', 'watched-'])
    await maps.seen('DELETED    seen')
    await ok(['cordon', 'pi-02'])
    await nodes.seen('SchedulingDisabled')
    await ok(['uncordon', 'pi-02'])
    const [, { stdout }] = await Promise.all([nodes.stop(), maps.stop()])
    t.notMatch(stdout, 'unseen')
  })

  await t.test('waits for a condition, a value, and an end', async (t) => {
    await ok(['create', '-f', '-'], podManifest('awaited'))
    const waits = [
      ok(['wait', 'node/pi-01', '--for=condition=Ready', '--timeout=60s']),
      ok(['wait', 'pod/awaited', '--for=condition=Ready', '--timeout=60s']),
      ok(['wait', 'pod/awaited', '--for=jsonpath={.status.phase}=Running', '--timeout=60s']),
      // Within the time it must have read the pod.
      kubectl(['wait', 'pod/awaited', '--for=condition=Never', '--timeout=10s']),
      kubectl(['wait', 'pod/awaited', '--for=condition=Ready', '--timeout=60s'], {
        env: { KUBE_FEATURE_WatchListClient: 'true' },
      }),
    ]
    const pod = await api.store.get('pods', { namespace: 'default', name: 'awaited' })
    if (pod === undefined) return t.fail('the pod is not there')
    const conditions = [{ type: 'Ready', status: 'True' } as const]
    await api.store.updateStatus('pods', { ...pod, status: { ...pod.status, phase: 'Running', conditions } })
    const [node, ready, running, never, streamed] = await Promise.all(waits)
    t.equal(node?.stdout, 'node/pi-01 condition met\n')
    t.equal(ready?.stdout, 'pod/awaited condition met\n')
    t.equal(running?.stdout, 'pod/awaited condition met\n')
    t.match(never, { code: 1, stderr: /timed out waiting for the condition/ })
    t.match(streamed, { code: 0, stdout: 'pod/awaited condition met\n', stderr: '' })
    await api.watched(0)
    const gone = ok(['wait', 'pod/awaited', '--for=delete', '--timeout=60s'])
    const marked = api.watching(['get', 'pod', 'awaited', '-w', '--no-headers'])
    // kubectl passes over the first event of such a watch: it takes it for what it has read and shown before.
    await api.watched(2)
    const deleted = kubectl(['delete', 'pod', 'awaited', '--timeout=60s'], {
      env: { KUBE_FEATURE_WatchListClient: 'true' },
    })
    await marked.seen('Terminating')
    await api.watched(3)
    await api.store.delete('pods', { namespace: 'default', name: 'awaited' })
    t.equal((await gone).stdout, 'pod/awaited condition met\n')
    t.match(await deleted, { code: 0, stdout: 'pod "awaited" deleted\n', stderr: '' })
    await marked.stop()
  })

  await t.test('deletes a node, and reports what is not found', async (t) => {
    await ok(['create', '-f', '-'], '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "pi-99"}}')
    t.equal((await ok(['delete', 'node', 'pi-99'])).stdout, 'node "pi-99" deleted\n')
    const missing = await kubectl(['get', 'node', 'pi-99'])
    t.match(missing, { code: 1, stderr: 'Error from server (NotFound): nodes "pi-99" not found\n' })
    t.match(await ok(['delete', 'node', 'pi-99', '--ignore-not-found']), { stdout: '' })
  })

  await t.test('prints the reason of a rejected request', async (t) => {
    const stranger = await api.kubeconfigFor('eve', api.issueFor({ user: 'eve', groups: [] }))
    const lost = await api.kubeconfigFor('stranger')
    const token = join(api.folder, 'token')
    await writeFile(token, 'abcdef.0123456789abcdef')
    const invalid =
      'apiVersion: v1\nkind: Pod\nmetadata: {name: Bad_Name}\nspec: {containers: [{name: main, image: a}]}\n'
    const unknown = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: strict}\nbogus: 1\n'
    const [exists, wrong, strict, forbidden, unauthorized, kind, impersonated] = await Promise.all([
      kubectl(['create', '-f', '-'], { input: '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "pi-01"}}' }),
      kubectl(['create', '-f', '-'], { input: invalid }),
      kubectl(['create', '-f', '-'], { input: unknown }),
      kubectl(['get', '--raw', '/api/v1/nodes'], { kubeconfig: stranger }),
      kubectl(['get', 'nodes', '--token', 'abcdef.0123456789abcdef'], { kubeconfig: lost }),
      kubectl(['apply', '-f', '-'], {
        input: '{"apiVersion": "apps/v1", "kind": "Robot", "metadata": {"name": "a"}}',
      }),
      kubectl(['get', '--raw', '/version', '--as', 'root'], { kubeconfig: stranger }),
    ])
    t.match(exists, {
      code: 1,
      stderr: 'Error from server (AlreadyExists): error when creating "STDIN": nodes "pi-01" already exists\n',
    })
    t.equal(wrong.code, 1)
    t.match(wrong.stderr, /^The Pod "Bad_Name" is invalid: ?\s*\*? ?metadata\.name: Invalid value/)
    t.match(strict, { code: 1, stderr: /\(BadRequest\).*strict decoding error: unknown field "bogus"/ })
    t.match(forbidden, {
      code: 1,
      stderr: /\(Forbidden\): nodes is forbidden: User "eve" cannot list resource "nodes"/,
    })
    t.match(unauthorized, { code: 1, stderr: /You must be logged in to the server/ })
    t.match(kind, { code: 1, stderr: /no matches for kind "Robot" in version "apps\/v1"/ })
    t.match(impersonated, {
      code: 1,
      stderr: /\(Forbidden\): users "root" is forbidden: User "eve" cannot impersonate/,
    })
  })

  await t.test('empties a namespace before its deletion', async (t) => {
    await ok(['apply', '-f', '-'], '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}')
    await ok(['apply', '-n', 'team', '-f', '-'], '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}')
    t.equal((await ok(['delete', 'namespace', 'team', '--timeout=60s'])).stdout, 'namespace "team" deleted\n')
    t.match(await kubectl(['get', 'cm', 'a', '-n', 'team']), { code: 1, stderr: /NotFound/ })
  })
})
