import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

/** `kubectl apply --server-side`: fields, their managers and conflicts. */

const settings = (data: object) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data })

test('kubectl applies on the server', { skip: whyNoKubectl() }, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { kubectl, store } = api
  const ok = async (args: readonly string[], input = '') => {
    const ran = await kubectl(args, { input })
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.stderr}`)
    return ran
  }
  const apply = (input: string, ...more: readonly string[]) =>
    kubectl(['apply', '--server-side', ...more, '-f', '-'], { input })
  const stored = async () => (await store.get('configmaps', { namespace: 'default', name: 'settings' }))?.data

  t.match(await apply(settings({ a: '1', b: '2' })), { code: 0, stdout: 'configmap/settings serverside-applied' })
  t.match(await apply(settings({ a: '1' })), { code: 0, stderr: '' })
  t.same(await stored(), { a: '1' }, 'what the applier dropped is gone')

  await ok(['patch', 'configmap', 'settings', '-p', '{"data":{"a":"9"}}'])
  const refused = await apply(settings({ a: '1' }))
  t.equal(refused.code, 1)
  t.match(refused.stderr, /Apply failed with 1 conflict: conflict with "kubectl-patch" using v1 at .*: \.data\.a/)
  t.match(await apply(settings({ a: '1' }), '--force-conflicts'), { code: 0 })
  t.same(await stored(), { a: '1' })

  await ok(['apply', '-f', '-'], settings({ a: '1' }).replace('settings', 'old'))
  const migrated = await apply(settings({ a: '2' }).replace('settings', 'old'))
  t.equal(migrated.code, 0, migrated.stderr)
  const shown = JSON.parse((await ok(['get', 'cm', 'old', '-o', 'json', '--show-managed-fields'])).stdout)
  t.same(
    shown.metadata.managedFields.map(({ manager, operation }: { manager: string; operation: string }) => [
      manager,
      operation,
    ]),
    [
      ['kubectl', 'Apply'],
      ['kubectl-last-applied', 'Apply'],
    ],
    'the last of these owns the annotation of client-side apply, as in Kubernetes',
  )
})
