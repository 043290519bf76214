import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { runtimeHandler } from './runtime-handler.ts'

test('the class of a pod names the runtime of the engine', async (t) => {
  const classes = [
    { name: 'other', handler: 'crun' },
    { name: 'safe', handler: 'runsc' },
  ]
  const of = (runtimeClassName?: string) =>
    runtimeHandler(aPod({ spec: { ...(runtimeClassName !== undefined && { runtimeClassName }) } }), classes)
  t.same(of('safe'), { ok: true, handler: 'runsc' })
  t.same(of(), { ok: true, handler: undefined })
  t.same(of(''), { ok: true, handler: undefined })
  t.same(of('gone'), { ok: false, message: 'runtimeclass.node.k8s.io "gone" not found' })
})
