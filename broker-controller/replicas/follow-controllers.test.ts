import { test } from 'tap'
import type { ControllerAddress } from '../store/controllers.ts'
import { followControllers } from './follow-controllers.ts'

function controller(host: string, proxyCertificate = 'aa'): ControllerAddress {
  const addresses = { apiServer: `https://${host}:6443`, mqttServer: `mqtts://${host}:8883` }
  return { ...addresses, hosts: [host, 'localhost'], proxyCertificate, version: '1' }
}

test('certificates are issued again when the controllers of the fleet are others, and not when one is restarted', async (t) => {
  let all = [controller('a')]
  let changed = () => {}
  let issued = 0
  const registry = {
    all: () => all,
    onChange(listener: () => void) {
      changed = listener
    },
  }
  followControllers(registry, { error: (message) => void t.fail(message) }, async () => void issued++)
  const after = (next: ControllerAddress[]) => {
    all = next
    changed()
    return issued
  }
  t.equal(after([controller('a', 'bb')]), 0, 'a restart')
  t.equal(after([controller('a', 'bb'), controller('b')]), 1, 'another one')
  t.equal(after([controller('b'), controller('a')]), 1, 'in another order')
  t.equal(after([{ ...controller('a'), hosts: ['floating'] }, controller('b')]), 2, 'another name')
  t.equal(after([controller('b')]), 3, 'one less')
})
