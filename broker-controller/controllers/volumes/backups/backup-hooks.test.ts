import { test } from 'tap'
import { aPod } from '../../../../api/testing/builders.ts'
import { hookOf } from './backup-hooks.ts'

const pod = (annotations: Readonly<Record<string, string>>) => {
  const { metadata, ...rest } = aPod({ name: 'db-0' })
  const all = Object.entries(annotations).map(([name, text]) => [`pre.hook.backup.velero.io/${name}`, text])
  return { ...rest, metadata: { ...metadata, annotations: Object.fromEntries(all) } }
}

test('the commands of pods are read as Velero reads them', async (t) => {
  const plain = { timeoutMs: 30_000, mayFail: false, container: pod({}).spec.containers[0]?.name }
  t.equal(hookOf(pod({}), 'pre'), undefined)
  t.equal(hookOf(pod({ command: '' }), 'pre'), undefined)
  t.equal(hookOf(pod({ command: 'x'.repeat(5_000) }), 'pre'), undefined)
  t.equal(hookOf(pod({ command: '/bin/dump' }), 'post'), undefined)
  t.same(hookOf(pod({ command: '/bin/dump' }), 'pre'), { ...plain, command: ['/bin/dump'] })
  const list = '["/bin/sh", "-c", "pg_dump > /data/dump"]'
  t.same(hookOf(pod({ command: list }), 'pre'), { ...plain, command: ['/bin/sh', '-c', 'pg_dump > /data/dump'] })
  for (const odd of ['[', '[]', '[1]']) t.match(hookOf(pod({ command: odd }), 'pre'), { command: [odd] })
  const all = { command: 'x', container: 'side', timeout: '2m', 'on-error': 'Continue' }
  t.same(hookOf(pod(all), 'pre'), { command: ['x'], container: 'side', timeoutMs: 120_000, mayFail: true })
  t.match(hookOf(pod({ command: 'x', timeout: '1000h' }), 'pre'), { timeoutMs: 3600_000 })
  t.match(hookOf(pod({ command: 'x', timeout: 'soon' }), 'pre'), { timeoutMs: 30_000 })
})
