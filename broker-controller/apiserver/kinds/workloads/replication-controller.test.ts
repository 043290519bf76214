import { test } from 'tap'
import type { ReplicationController } from '../../../../api/workloads/replication-controller.ts'
import { causes, create, update } from '../../../testing/admitting.ts'
import { replicationControllerStrategy } from './replication-controller.ts'

type Spec = ReplicationController['spec']
const labels = { app: 'web' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'nginx:1.27' }] } }
const controller = (spec: Spec = {}, metadata = {}): ReplicationController => ({
  apiVersion: 'v1',
  kind: 'ReplicationController',
  metadata: { name: 'web', namespace: 'default', ...metadata },
  spec: { template, ...spec },
})

test('a controller has the labels of its template, where its author gives it none', async (t) => {
  const made = (...given: Parameters<typeof controller>) => {
    const { metadata, spec } = create('replicationcontrollers', controller(...given))
    return { labels: metadata.labels, spec }
  }
  t.match(made(), { labels, spec: { replicas: 1, selector: labels, template: { spec: { restartPolicy: 'Always' } } } })
  t.match(made({ selector: {}, replicas: 0 }), { labels, spec: { replicas: 0, selector: labels } })
  const own = { tier: 'front' }
  const both = { ...template, metadata: { labels: { ...labels, ...own } } }
  t.same(made({ template: both, selector: own }, { labels: own }).labels, own)
  t.match(made({ template: both, selector: own }).spec, { selector: own })
})

test('every wrong field of a controller is named', async (t) => {
  const wrong = (spec: Spec) => causes(() => create('replicationcontrollers', controller(spec)))
  t.same(wrong({}), [])
  t.same(wrong({ minReadySeconds: -1, replicas: -2 }), [
    'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
    'spec.replicas: Invalid value: -2: must be greater than or equal to 0',
  ])
  t.same(wrong({ template: undefined }), ['spec.selector: Required value', 'spec.template: Required value'])
  t.same(wrong({ template: undefined, selector: labels }), ['spec.template: Required value'])
  t.same(wrong({ template: { spec: template.spec } }), ['spec.selector: Required value'])
  t.same(wrong({ selector: { app: 'db' } }), [
    'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
  ])
  t.same(
    wrong({
      template: { ...template, spec: { ...template.spec, restartPolicy: 'OnFailure', activeDeadlineSeconds: 5 } },
    }),
    [
      'spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"',
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is not Supported',
    ],
  )
})

test('the selector of a controller may change with its template', async (t) => {
  const made = create('replicationcontrollers', controller())
  const now = controller({ selector: { app: 'db' }, template: { ...template, metadata: { labels: { app: 'db' } } } })
  t.same(
    causes(() => update('replicationcontrollers', made, now)),
    [],
  )
})

test('the table shows the replicas of a controller, its containers and its selector', async (t) => {
  const cells = (one: ReplicationController) => replicationControllerStrategy.table.cells(one, 0)
  t.same(cells(controller()), ['web', 0, 0, 0, '<unknown>', 'web', 'nginx:1.27', '<none>'])
  const more = { selector: { tier: 'front', app: 'web' }, replicas: 3 }
  t.same(cells({ ...controller(more), status: { replicas: 2, readyReplicas: 1 } }), [
    ...['web', 3, 2, 1, '<unknown>', 'web', 'nginx:1.27', 'app=web,tier=front'],
  ])
})

test('a deletion that names no policy leaves the pods of a controller, as it always did', async (t) => {
  t.equal(replicationControllerStrategy.orphansByDefault, true)
})
