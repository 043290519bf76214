import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

/** `kubectl apply --server-side`: fields, their managers and conflicts. */

const manifest = (data: object, name = 'settings') =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data })

/** A real API, and kubectl against it. */
async function anApi(t: Parameters<typeof quietLog>[0] & { teardown(stop: () => unknown): void }) {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { kubectl, store } = api
  const run = async (args: readonly string[], input = '') => {
    const ran = await kubectl(args, { input })
    return { ...ran, what: `kubectl ${args.join(' ')}: ${ran.stderr}` }
  }
  const apply = (input: string, ...more: readonly string[]) =>
    run(['apply', '--server-side', ...more, '-f', '-'], input)
  const dataOf = async (name = 'settings') => (await store.get('configmaps', { namespace: 'default', name }))?.data
  const managersOf = async (name: string) => {
    const { stdout } = await run(['get', 'cm', name, '-o', 'json', '--show-managed-fields'])
    const { metadata } = JSON.parse(stdout) as {
      metadata: { managedFields?: { manager: string; operation: string }[] }
    }
    // Those of one operation are in the order of their times, which are whole seconds.
    return (metadata.managedFields ?? []).map(({ manager, operation }) => `${manager} ${operation}`).sort()
  }
  return { run, apply, dataOf, managersOf }
}

test('kubectl applies on the server, and takes fields of others by force only', { skip: whyNoKubectl() }, async (t) => {
  const { run, apply, dataOf, managersOf } = await anApi(t)
  t.match(await apply(manifest({ a: '1', b: '2' })), { code: 0, stdout: 'configmap/settings serverside-applied' })
  t.match(await apply(manifest({ a: '1' })), { code: 0, stderr: '' })
  t.same(await dataOf(), { a: '1' }, 'what the manifest dropped is gone')

  const patched = await run(['patch', 'configmap', 'settings', '-p', '{"data":{"a":"9"}}'])
  t.equal(patched.code, 0, patched.what)
  const refused = await apply(manifest({ a: '1' }))
  t.equal(refused.code, 1)
  t.match(refused.stderr, /Apply failed with 1 conflict: conflict with "kubectl-patch" using v1 at .*: \.data\.a/)
  t.match(refused.stderr, /--force-conflicts/, 'the conflict is one that kubectl explains')
  t.match(await apply(manifest({ a: '1' }), '--force-conflicts'), { code: 0 })
  t.same(await dataOf(), { a: '1' })
  t.match(await apply(manifest({ c: '3' }), '--field-manager=other'), { code: 0 })
  t.same(await managersOf('settings'), ['kubectl Apply', 'other Apply'])
  const hidden = await run(['get', 'cm', 'settings', '-o', 'yaml'])
  t.notMatch(hidden.stdout, /managedFields/)
})

test('a dry run and a diff on the server store nothing', { skip: whyNoKubectl() }, async (t) => {
  const { run, apply, dataOf } = await anApi(t)
  const rehearsed = await apply(manifest({ a: '1' }), '--dry-run=server')
  t.match(rehearsed, { code: 0, stdout: 'configmap/settings serverside-applied (server dry run)' })
  t.equal(await dataOf(), undefined)
  await apply(manifest({ a: '1' }))
  const diff = await run(['diff', '--server-side', '-f', '-'], manifest({ a: '2' }))
  t.equal(diff.code, 1, 'there are differences')
  t.match(diff.stdout, /^-\s+a: "1"\n\+\s+a: "2"/m)
  t.match(await run(['diff', '--server-side', '-f', '-'], manifest({ a: '1' })), { code: 0, stdout: '' })
  t.same(await dataOf(), { a: '1' })
})

test('kubectl goes over from client-side apply, and back', { skip: whyNoKubectl() }, async (t) => {
  const { run, apply, dataOf, managersOf } = await anApi(t)
  const first = await run(['apply', '-f', '-'], manifest({ a: '1', b: '1' }, 'old'))
  t.equal(first.code, 0, first.what)
  const moved = await apply(manifest({ a: '2' }, 'old'))
  t.equal(moved.code, 0, moved.what)
  t.same(await dataOf('old'), { a: '2' }, 'kubectl takes over what it had applied, so that it can remove it')
  t.same(await managersOf('old'), ['kubectl Apply', 'kubectl-last-applied Apply'])
  const back = await run(['apply', '-f', '-'], manifest({ c: '1' }, 'old'))
  t.equal(back.code, 0, back.what)
  t.same(await dataOf('old'), { c: '1' }, 'the annotation was kept up to date')
})

test('a typing error is refused, and a pod is applied by its containers', { skip: whyNoKubectl() }, async (t) => {
  const { run, apply } = await anApi(t)
  const wrong = await apply(manifest({ a: '1' }).replace('"data"', '"daat"'))
  t.equal(wrong.code, 1)
  t.match(wrong.stderr, /\.daat: field not declared in schema/)
  const pod = (...containers: readonly object[]) =>
    JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers } })
  const ports = [
    { containerPort: 53, protocol: 'TCP' },
    { containerPort: 53, protocol: 'UDP' },
  ]
  const made = await apply(pod({ name: 'main', image: 'busybox:1', ports }))
  t.equal(made.code, 0, made.what)
  const changed = await apply(pod({ name: 'main', image: 'busybox:2', ports }))
  t.equal(changed.code, 0, changed.what)
  const { stdout } = await run([
    'get',
    'pod',
    'web',
    '-o',
    'jsonpath={.spec.containers[*].image} {.spec.containers[*].ports[*].protocol}',
  ])
  t.equal(stdout, 'busybox:2 TCP UDP')
})
