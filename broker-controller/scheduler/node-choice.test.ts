import { test } from 'tap'
import type { Taint } from '../../api/node.ts'
import type { NodeSelectorTerm, Toleration } from '../../api/pod.ts'
import { aNode, aPod, type NodeOverrides, type PodOverrides, requiringNodes } from '../../api/testing/builders.ts'
import { isWanted, namedNodes, repellingTaint, wantsAnyNode } from './node-choice.ts'
import { nodeInfo } from './node-usage.ts'

const on = (over: NodeOverrides) => nodeInfo(aNode(over))
const asks = (key: string, operator: string, ...values: readonly string[]) => ({
  ...{ key, operator, ...(values.length > 0 && { values }) },
})
const expressions = (...matchExpressions: ReturnType<typeof asks>[]): NodeSelectorTerm => ({ matchExpressions })
const fields = (...matchFields: ReturnType<typeof asks>[]): NodeSelectorTerm => ({ matchFields })
const named = (...names: readonly string[]) => asks('metadata.name', 'In', ...names)

test('a node is wanted that has all labels of the selector, and one term of the required affinity', async (t) => {
  const required = (...terms: readonly NodeSelectorTerm[]): PodOverrides => ({ spec: requiringNodes(...terms) })
  const roof = expressions(asks('place', 'In', 'roof', 'attic'))
  const cases: readonly (readonly [title: string, PodOverrides, isWanted: boolean])[] = [
    ['nothing asked', {}, true],
    ['an empty selector', { nodeSelector: {} }, true],
    ['its label', { nodeSelector: { place: 'roof' } }, true],
    ['another value', { nodeSelector: { place: 'cellar' } }, false],
    ['one of two labels', { nodeSelector: { place: 'roof', disk: 'ssd' } }, false],
    ['a name that every object has', { nodeSelector: { toString: '' } }, false],
    ['In', required(roof), true],
    ['NotIn', required(expressions(asks('place', 'NotIn', 'roof'))), false],
    ['NotIn of a label that it lacks', required(expressions(asks('disk', 'NotIn', 'ssd'))), true],
    ['Exists', required(expressions(asks('place', 'Exists'))), true],
    ['DoesNotExist', required(expressions(asks('disk', 'DoesNotExist'))), true],
    ['Gt', required(expressions(asks('cores', 'Gt', '3'))), true],
    ['Gt of as much', required(expressions(asks('cores', 'Gt', '4'))), false],
    ['Lt', required(expressions(asks('cores', 'Lt', '5'))), true],
    ['Gt of a label that is not a number', required(expressions(asks('place', 'Gt', '3'))), false],
    ['all of a term', required(expressions(asks('place', 'Exists'), asks('disk', 'Exists'))), false],
    ['one of several terms', required(expressions(asks('disk', 'Exists')), roof), true],
    ['its name', required(fields(named('pi-01'))), true],
    ['not its name', required(fields(asks('metadata.name', 'NotIn', 'pi-01'))), false],
    ['an empty term matches nothing', required({}), false],
    ['no terms match nothing', required(), false],
    ['both', { nodeSelector: { place: 'roof' }, ...required(roof) }, true],
    ['the term alone', { nodeSelector: { place: 'cellar' }, ...required(roof) }, false],
  ]
  const node = on({ labels: { place: 'roof', cores: '4' } })
  for (const [title, over, expected] of cases) t.equal(isWanted(aPod(over), node), expected, title)
})

test('a pod without a selector and required affinity takes any node', async (t) => {
  t.equal(wantsAnyNode(aPod()), true)
  t.equal(wantsAnyNode(aPod({ nodeSelector: {} })), true)
  t.equal(wantsAnyNode(aPod({ spec: { affinity: { podAffinity: {} } } })), true)
  t.equal(wantsAnyNode(aPod({ nodeSelector: { place: 'roof' } })), false)
  t.equal(wantsAnyNode(aPod({ spec: requiringNodes() })), false, 'no terms match nothing')
})

test('the first taint that is not tolerated keeps a pod away; one to avoid does not', async (t) => {
  const camera: Taint = { key: 'camera', value: 'yes', effect: 'NoSchedule' }
  const repair: Taint = { key: 'repair', effect: 'NoExecute' }
  const slow: Taint = { key: 'slow', effect: 'PreferNoSchedule' }
  const cases: readonly (readonly [readonly Taint[], readonly Toleration[], expected?: Taint])[] = [
    [[], []],
    [[slow], []],
    [[slow, camera, repair], [], camera],
    [[camera, repair], [{ key: 'camera', operator: 'Exists' }], repair],
    [[camera], [{ key: 'camera', value: 'yes' }]],
    [[camera], [{ key: 'camera', operator: 'Equal', value: 'no' }], camera],
    [[camera], [{ key: 'camera', operator: 'Exists', effect: 'NoExecute' }], camera],
    [[repair], [{ key: 'repair', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 }]],
    [[camera, repair], [{ operator: 'Exists' }]],
  ]
  for (const [taints, tolerations, expected] of cases) {
    const title = JSON.stringify([taints.map(({ key }) => key), tolerations])
    t.same(repellingTaint(aPod({ tolerations }), on({ taints })), expected, title)
  }
})

test('the names that terms allow are those of all requirements of one, and of any of the terms', async (t) => {
  const zone = expressions(asks('zone', 'Exists'))
  const cases: readonly (readonly [title: string, readonly NodeSelectorTerm[], expected?: readonly string[]])[] = [
    ['no terms', []],
    ['a label', [zone]],
    ['a name', [fields(named('a'))], ['a']],
    ['several names', [fields(named('a', 'b'))], ['a', 'b']],
    ['several terms', [fields(named('a')), fields(named('b', 'a'))], ['a', 'b']],
    ['a name and a label', [{ ...zone, ...fields(named('a')) }], ['a']],
    ['a name or a label', [fields(named('a')), zone]],
    ['what two requirements allow', [fields(named('a', 'b'), named('b', 'c'))], ['b']],
    ['two requirements that conflict', [fields(named('a'), named('b'))], []],
    ['a conflict or a name', [fields(named('a'), named('b')), fields(named('c'))], ['c']],
    ['any other name', [fields(asks('metadata.name', 'NotIn', 'a'))]],
  ]
  for (const [title, terms, expected] of cases) {
    const names = namedNodes(aPod({ spec: requiringNodes(...terms) }))
    t.same(names && [...names], expected, title)
  }
  t.equal(namedNodes(aPod()), undefined)
})
