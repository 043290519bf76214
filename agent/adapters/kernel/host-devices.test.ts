import { test } from 'tap'
import { findDevices } from './host-devices.ts'

test('devices are found by their path, or by what their paths look like', async (t) => {
  const found = await findDevices([
    { resource: 'bramble.dev/null', paths: ['/dev/null'] },
    { resource: 'bramble.dev/some', paths: ['/dev/z?ro', '/dev/nul*', '/dev/null', '/nowhere/*'] },
    { resource: 'bramble.dev/none', paths: ['/dev/no-such-thing', '/etc/passwd'] },
  ])
  t.same(
    [...found],
    [
      ['bramble.dev/null', ['/dev/null']],
      ['bramble.dev/some', ['/dev/null', '/dev/zero']],
      ['bramble.dev/none', []],
    ],
  )
})
