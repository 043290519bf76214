import { test } from 'tap'
import type { RuntimeClass } from '../../../../api/node/runtime-class.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { anApi } from '../../../testing/api-in-memory.ts'

const runtimeClass = (more: Partial<RuntimeClass> = {}): RuntimeClass => ({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name: 'safe' },
  handler: 'runsc',
  ...more,
})

test('a class is created and listed, and its handler stays', async (t) => {
  const { ask } = await anApi(t)
  const path = '/apis/node.k8s.io/v1/runtimeclasses'
  t.equal((await ask('POST', path, { body: runtimeClass() })).code, 201)
  const { body } = await ask('GET', path, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })
  t.match(body, {
    columnDefinitions: [{ name: 'Name' }, { name: 'Handler' }, { name: 'Age' }],
    rows: [{ cells: ['safe', 'runsc'] }],
  })
  t.match(
    causes(() =>
      update('runtimeclasses', create('runtimeclasses', runtimeClass()), runtimeClass({ handler: 'other' })),
    ),
    ['handler: Invalid value: "other": field is immutable'],
  )
  t.same(
    causes(() => update('runtimeclasses', create('runtimeclasses', runtimeClass()), runtimeClass())),
    [],
  )
  const apart = [{ key: 'a' }, { key: 'b' }, { key: 'a', value: 'c' }, { key: 'a', effect: 'NoExecute' }]
  const right = runtimeClass({ overhead: { podFixed: { cpu: '0' } }, scheduling: { tolerations: apart } })
  t.same(
    causes(() => create('runtimeclasses', right)),
    [],
  )
  const wrong = runtimeClass({
    handler: 'Not_One',
    overhead: { podFixed: { fish: '1', cpu: '-1' } },
    scheduling: { nodeSelector: { 'a b': 'c' }, tolerations: [{ key: 'a' }, { key: 'a' }, { operator: 'Like' }] },
  })
  t.match(
    causes(() => create('runtimeclasses', wrong)),
    [
      /^handler: Invalid value: "Not_One"/,
      /^overhead.limits.fish: Invalid value: "fish": must be a standard resource type/,
      /^overhead.limits.fish: Invalid value: "fish": must be a standard resource for containers/,
      'overhead.limits.cpu: Invalid value: "-1": must be greater than or equal to 0',
      /^scheduling.nodeSelector: Invalid value: "a b"/,
      /^scheduling.tolerations\[1\]: Duplicate value/,
      /^scheduling.tolerations\[2\].operator: Invalid value/,
      /^scheduling.tolerations\[2\].operator: Unsupported value/,
    ],
  )
})

test('a pod of a class that does not exist is refused, and so is an overhead without a class', async (t) => {
  const { ask } = await anApi(t)
  const pod = (spec: object) => ({
    metadata: { name: 'one' },
    spec: { containers: [{ name: 'main', image: 'busybox:1.36' }], ...spec },
  })
  const path = '/api/v1/namespaces/default/pods'
  t.match(await ask('POST', path, { body: pod({ runtimeClassName: 'safe' }) }), {
    code: 403,
    body: { message: 'pods "one" is forbidden: pod rejected: RuntimeClass "safe" not found' },
  })
  t.match(await ask('POST', path, { body: pod({ overhead: { cpu: '1' } }) }), {
    code: 403,
    body: { message: /Pod Overhead set without corresponding RuntimeClass defined Overhead$/ },
  })
  const body = runtimeClass({ overhead: { podFixed: { cpu: '250m' } } })
  await ask('POST', '/apis/node.k8s.io/v1/runtimeclasses', { body })
  t.match(await ask('POST', path, { body: pod({ runtimeClassName: 'safe' }) }), {
    code: 201,
    body: { spec: { runtimeClassName: 'safe', overhead: { cpu: '250m' } } },
  })
})
