import { test } from 'tap'
import type { ContainerPort, EnvVar } from '../pod.ts'
import { envWarnings, portWarnings } from './container-warnings.ts'

test('a variable that hides one before it, unless it is made of that', async (t) => {
  const hides = (...env: EnvVar[]) => envWarnings('at', env).length
  const hidden = 'hides previous definition of "a", which may be dropped when using apply'
  t.same(envWarnings('at', [{ name: 'a' }, { name: 'b' }, { name: 'a', value: 'x' }]), [`at.env[2]: ${hidden}`])
  t.equal(hides({ name: 'a', value: '1' }, { name: 'b', value: '1' }), 0)
  t.equal(hides({ name: 'a', value: '1' }, { name: 'a', value: '$(a)2' }), 0)
  t.equal(hides({ name: 'a', value: '1' }, { name: 'a', value: '$(a)' }), 1)
  t.equal(hides({ name: 'a', value: '1' }, { name: 'a', value: '$(b)' }), 1)
  const valueFrom = { fieldRef: { fieldPath: 'metadata.name' } }
  t.equal(hides({ name: 'a', value: '1' }, { name: 'a', valueFrom }), 1)
})

test('ports that are the same, or partly', async (t) => {
  const base = { containerPort: 80, protocol: 'TCP' }
  const clash = (one: Partial<ContainerPort>, other: Partial<ContainerPort>) => {
    const ports = [one, other].map((port) => ({ ...base, ...port }))
    const [warning = ''] = portWarnings([{ at: 'at', container: { name: 'c', image: 'i', ports } }])
    return warning
  }
  t.equal(clash({}, {}), 'at.ports[1]: duplicate port definition with at.ports[0]')
  t.equal(clash({ hostPort: 1 }, {}), 'at.ports[1]: overlapping port definition with at.ports[0]')
  const address = { hostPort: 1, hostIP: '10.0.0.1' }
  t.equal(clash({ hostPort: 1 }, address), 'at.ports[1]: dangerously ambiguous port definition with at.ports[0]')
  t.equal(clash(address, { ...address, hostIP: '10.0.0.2' }), '')
  t.equal(clash({ hostPort: 1 }, { hostPort: 2 }), '')
  t.equal(clash({}, { protocol: 'UDP' }), '')
  t.equal(clash({}, { containerPort: 81 }), '')
  t.equal(
    clash({ name: 'web', hostIP: '10.0.0.1' }, { containerPort: 81 }),
    'at.ports[0]: hostIP set without hostPort: {Name:web HostPort:0 ContainerPort:80 Protocol:TCP HostIP:10.0.0.1}',
  )
})

test('many equal ports have at most as many warnings as an answer has space for', async (t) => {
  const ports = Array.from({ length: 300 }, () => ({ containerPort: 80, protocol: 'TCP' }))
  const warnings = portWarnings([{ at: 'at', container: { name: 'c', image: 'i', ports } }])
  t.equal(warnings.length, 100)
  t.equal(warnings[0], 'at.ports[1]: duplicate port definition with at.ports[0]')
})
