import { test } from 'tap'
import type { Taint } from '../node.ts'
import { minimumTolerationSeconds, schedulingEffects, tolerates, untolerated } from './tolerations.ts'

const taint: Taint = { key: 'disk', value: 'slow', effect: 'NoExecute' }

test('a toleration matches by effect, key, operator and value', async (t) => {
  t.ok(tolerates({ key: 'disk', value: 'slow', effect: 'NoExecute' }, taint), 'all equal')
  t.ok(tolerates({ key: 'disk', operator: 'Equal', value: 'slow' }, taint), 'no effect means every effect')
  t.ok(tolerates({ operator: 'Exists' }, taint), 'no key and Exists means every taint')
  t.ok(tolerates({ key: 'disk' }, { key: 'disk', effect: 'NoSchedule' }), 'a missing value is an empty one')
  t.notOk(tolerates({ key: 'disk', value: 'slow', effect: 'NoSchedule' }, taint), 'another effect')
  t.notOk(tolerates({ key: 'net', operator: 'Exists' }, taint), 'another key')
  t.notOk(tolerates({ key: 'disk', value: 'dead' }, taint), 'another value')
  t.notOk(tolerates({ key: 'disk', operator: 'Gt', value: 'slow' }, taint), 'an unsupported operator')
})

test('only taints of the effects asked for count as untolerated', async (t) => {
  const soft: Taint = { key: 'disk', effect: 'PreferNoSchedule' }
  t.same(untolerated([taint, soft], [], schedulingEffects), [taint])
  t.same(untolerated([taint, soft], [{ operator: 'Exists' }], schedulingEffects), [])
})

test('the first matching toleration sets the limit, and the least limit counts', async (t) => {
  const unreachable: Taint = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }
  const short = { key: 'disk', operator: 'Exists', tolerationSeconds: 10 }
  const long = { operator: 'Exists', tolerationSeconds: 300 }
  t.equal(minimumTolerationSeconds([taint, unreachable], [short, long]), 10)
  t.equal(minimumTolerationSeconds([taint], [long, short]), 300, 'a later, shorter one is not looked at')
  t.equal(minimumTolerationSeconds([taint], [{ operator: 'Exists' }]), undefined, 'for ever')
  t.equal(minimumTolerationSeconds([taint], [{ operator: 'Exists', tolerationSeconds: -5 }]), 0)
})
