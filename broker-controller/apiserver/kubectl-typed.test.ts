import { test } from 'tap'
import { aBudget, aNode, aPod } from '../../api/testing/builders.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

/** What kubectl sends in protobuf since 1.32, and the commands that lean on it: generators, certificates, drain. */

test('kubectl’s typed commands', {
  skip: whyNoKubectl(),
}, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { kubectl, store } = api
  const ok = async (...args: readonly string[]) => {
    const ran = await kubectl(args)
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.code === 0 ? '' : ran.stderr}`)
    return ran
  }
  const inDefault = (name: string) => ({ namespace: 'default', name })

  await t.test('makes objects from the command line', async (t) => {
    await ok('create', 'namespace', 'attic')
    await ok('create', 'configmap', 'settings', '--from-literal=a=1', '--from-literal=b=')
    await ok('create', 'secret', 'generic', 'key', '--from-literal=word=xyzzy')
    await ok('create', 'pdb', 'half', '--selector=app=web', '--min-available=50%')
    await ok('create', 'pdb', 'none', '--selector=app=db', '--max-unavailable=0')
    await ok('create', 'priorityclass', 'high', '--value=1000', '--description=first of all')
    t.match(await store.get('namespaces', { namespace: '', name: 'attic' }), { status: { phase: 'Active' } })
    t.same((await store.get('configmaps', inDefault('settings')))?.data, { a: '1', b: '' })
    t.match(await store.get('secrets', inDefault('key')), { data: { word: 'eHl6enk=' }, type: 'Opaque' })
    const half = await store.get('poddisruptionbudgets', inDefault('half'))
    t.same(half?.spec, { minAvailable: '50%', selector: { matchLabels: { app: 'web' } } })
    t.match(await store.get('poddisruptionbudgets', inDefault('none')), { spec: { maxUnavailable: 0 } })
    t.match(await store.get('priorityclasses', { namespace: '', name: 'high' }), { value: 1000 })
    const twice = await kubectl(['create', 'configmap', 'settings'])
    t.match(twice.stderr, 'configmaps "settings" already exists')
    const dry = await ok('create', 'configmap', 'other', '--dry-run=server', '-o', 'name')
    t.match(dry.stdout, 'configmap/other')
    t.match(
      (await ok('get', 'pdb')).stdout,
      /NAME +MIN AVAILABLE +MAX UNAVAILABLE +ALLOWED DISRUPTIONS +AGE\nhalf +50% +N\/A +0/,
    )
    t.match((await ok('describe', 'pdb', 'half')).stdout, /Min available: +50%/)
    await ok('delete', 'pdb', 'half', 'none')
    const { stderr } = await kubectl(['delete', 'priorityclass', 'high', 'system-node-critical'])
    t.match(stderr, 'this is a system priority class and cannot be deleted')
    t.equal(await store.get('priorityclasses', { namespace: '', name: 'high' }), undefined)
  })

  await t.test('approves and denies certificate requests', async (t) => {
    const pem = '-----BEGIN CERTIFICATE REQUEST-----\nMA==\n-----END CERTIFICATE REQUEST-----\n'
    for (const name of ['wanted', 'unwanted']) {
      await store.create('certificatesigningrequests', {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name },
        spec: { request: Buffer.from(pem).toString('base64'), signerName: 'example.com/any', usages: ['client auth'] },
      })
    }
    await ok('certificate', 'approve', 'wanted')
    await ok('certificate', 'deny', 'unwanted')
    t.match((await store.get('certificatesigningrequests', { namespace: '', name: 'wanted' }))?.status?.conditions, [
      { type: 'Approved', status: 'True', reason: 'KubectlApprove' },
    ])
    t.match((await ok('get', 'csr')).stdout, /unwanted .* Denied\nwanted .* Approved/)
  })

  await t.test('drains a node as far as budgets allow', async (t) => {
    const { metadata: _, ...node } = aNode()
    await store.create('nodes', { ...node, metadata: { name: 'pi-01' } })
    const place = async (name: string, app: string) => {
      const conditions = [{ type: 'Ready', status: 'True' } as const]
      const { metadata: __, ...pod } = aPod({ nodeName: 'pi-01', status: { phase: 'Running', conditions } })
      const metadata = { ...inDefault(name), labels: { app } }
      await store.create('pods', { ...pod, metadata })
    }
    await place('web', 'web')
    await place('db', 'db')
    const budget = aBudget({ status: { desiredHealthy: 1, currentHealthy: 1 } })
    const kept = await store.create('poddisruptionbudgets', { ...budget, metadata: inDefault('web') })
    const held = await kubectl(['drain', 'pi-01', '--force', '--timeout=6s', '--grace-period=0'])
    t.equal(held.code, 1)
    t.match(held.stderr, "Cannot evict pod as it would violate the pod's disruption budget.")
    t.match(await store.get('nodes', { namespace: '', name: 'pi-01' }), { spec: { unschedulable: true } })
    t.equal(await store.get('pods', inDefault('db')), undefined, 'what no budget protects is gone')
    t.equal((await store.get('pods', inDefault('web')))?.metadata.deletionTimestamp, undefined)

    await store.updateStatus('poddisruptionbudgets', {
      ...kept,
      status: { ...kept.status, disruptionsAllowed: 1 } as never,
    })
    t.match((await ok('drain', 'pi-01', '--force', '--grace-period=0')).stdout, 'node/pi-01 drained')
    t.equal(await store.get('pods', inDefault('web')), undefined)

    await place('web', 'web')
    await ok('drain', 'pi-01', '--force', '--grace-period=0', '--disable-eviction')
    t.equal(await store.get('pods', inDefault('web')), undefined, 'who insists is asked nothing')
    await ok('uncordon', 'pi-01')
    t.equal((await store.get('nodes', { namespace: '', name: 'pi-01' }))?.spec?.unschedulable, undefined)
  })
})
