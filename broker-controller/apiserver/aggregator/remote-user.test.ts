import { test } from 'tap'
import { withRemoteUser } from './remote-user.ts'

const jane = { user: 'jane', groups: ['a', 'system:authenticated'], uid: 'u1', extra: { 'example.com/x%': ['1', '2'] } }

test('the identity stands in headers, and nothing that a client claims', (t) => {
  const sent = ['Accept', '*/*', 'X-Remote-User', 'admin', 'x-remote-group', 'system:masters', 'X_Remote_Extra_a', 'b']
  t.same(withRemoteUser([...sent, 'X-Remote-Uid', '1', 'X-Remote-Extra-Scopes', 'all', 'X-Other', '1'], jane), [
    ...['Accept', '*/*', 'X-Other', '1'],
    ...['X-Remote-User', 'jane', 'X-Remote-Uid', 'u1'],
    ...['X-Remote-Group', 'a', 'X-Remote-Group', 'system:authenticated'],
    ...['X-Remote-Extra-example.com%2Fx%25', '1', 'X-Remote-Extra-example.com%2Fx%25', '2'],
  ])
  t.end()
})

test('a name is sent as its bytes of UTF-8, and one that would end a header is refused', (t) => {
  const [, value = ''] = withRemoteUser([], { user: 'jürgen', groups: [] })
  t.equal(Buffer.from(value, 'latin1').toString('utf8'), 'jürgen')
  for (const user of ['a\r\nX-Remote-Group: system:masters', 'a\u0000', 'a\u007f']) {
    t.throws(() => withRemoteUser([], { user, groups: [] }), { reason: 'BadRequest', message: /no header can have/ })
  }
  t.end()
})
