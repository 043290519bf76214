import { test } from 'tap'
import { identityOfSubject, nodeIdentity, nodeNameOf, nodeOf } from './identity.ts'

test('a node is known by its user name and its group', async (t) => {
  t.equal(nodeNameOf('system:node:pi-01.lan'), 'pi-01.lan')
  t.equal(nodeNameOf('system:node:'), undefined)
  t.equal(nodeNameOf('system:node:pi/../x'), undefined)
  t.equal(nodeNameOf('system:node:pi+#'), undefined)
  t.equal(nodeNameOf('kubernetes-admin'), undefined)
  t.equal(nodeOf(nodeIdentity('pi-01')), 'pi-01')
  t.equal(nodeOf({ user: 'system:node:pi-01', groups: [] }), undefined, 'the name alone is not enough')
})

test("a certificate's subject gives user and groups", async (t) => {
  t.same(identityOfSubject({ CN: 'ada', O: ['dev', 'ops'] }), { user: 'ada', groups: ['dev', 'ops'] })
  t.same(identityOfSubject({ CN: 'ada', O: 'dev' }), { user: 'ada', groups: ['dev'] })
  t.same(identityOfSubject({ CN: 'ada' }), { user: 'ada', groups: [] })
  t.equal(identityOfSubject({ CN: ['ada', 'eve'] }), undefined, 'two names are not a name')
  t.equal(identityOfSubject({}), undefined)
})
