import { test } from 'tap'
import type { ResourceRequirements } from '../pod.ts'
import { qosClassOf } from './qos-class.ts'

const classOf = (...resources: ResourceRequirements[]) =>
  qosClassOf({ containers: resources.map((each, index) => ({ name: `c${index}`, resources: each })) })

test('the QoS class follows from the requests and limits of the containers', async (t) => {
  const both = { cpu: '500m', memory: '64Mi' }
  t.equal(classOf({}), 'BestEffort')
  t.equal(classOf({ requests: { cpu: '0' } }), 'BestEffort')
  t.equal(classOf({ requests: { 'ephemeral-storage': '1Gi' } }), 'BestEffort')
  t.equal(classOf({ requests: { cpu: '100m' } }), 'Burstable')
  t.equal(classOf({ requests: both, limits: both }), 'Guaranteed')
  t.equal(
    classOf({ requests: { cpu: '0.5', memory: '65536Ki' }, limits: both }),
    'Guaranteed',
    'equal, however written',
  )
  t.equal(classOf({ requests: both, limits: both }, {}), 'Burstable', 'one container without limits')
  t.equal(classOf({ limits: both }), 'Burstable', 'the API fills requests in before this is asked')
})
