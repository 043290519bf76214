import { test } from 'tap'
import { secretsOf } from '../../../api/pod/pod-references.ts'
import type { Pod } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { namedBy } from './node-checkpoint-data.ts'

test('the names that pods give are collected once, however many objects a checkpoint has', async (t) => {
  const podOf = (namespace: string, secretName: string) =>
    aPod({ name: `of-${secretName}`, namespace, spec: { volumes: [{ name: 'files', secret: { secretName } }] } })
  const pods = [podOf('shop', 'a'), podOf('shop', 'b'), podOf('bank', 'c'), podOf('kube-system', 'd')]
  let reads = 0
  const isNamed = namedBy(pods, (pod: Pod) => {
    reads += 1
    return secretsOf(pod)
  })
  const objects = Array.from({ length: 1000 }, (_, index) => ({ namespace: 'shop', name: `other-${index}` }))
  t.notOk(objects.some(isNamed))
  const named = ['shop/a', 'shop/b', 'shop/c', 'bank/c', 'bank/a', 'kube-system/d', 'away/a'].filter((text) => {
    const [namespace = '', name = ''] = text.split('/')
    return isNamed({ namespace, name })
  })
  t.same(named, ['shop/a', 'shop/b', 'bank/c'], 'by namespace, and none in a namespace of the fleet itself')
  t.equal(reads, pods.length)
})
