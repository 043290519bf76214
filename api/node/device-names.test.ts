import { test } from 'tap'
import { isDevice } from './device-names.ts'

test('a device has the prefix of Bramble', async (t) => {
  t.same(['bramble.dev/camera', 'example.com/bramble.dev/camera', 'cpu'].filter(isDevice), ['bramble.dev/camera'])
})
