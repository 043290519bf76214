import { test } from 'tap'
import { isDevice, isExtendedResource } from './extended-resources.ts'

test('an extended resource has a domain that is not of Kubernetes', async (t) => {
  const names = [
    'example.com/gpu',
    'bramble.dev/camera',
    'cpu',
    'hugepages-2Mi',
    'kubernetes.io/batch',
    'a.kubernetes.io/b',
    'requests.example.com/gpu',
  ]
  t.same(names.filter(isExtendedResource), ['example.com/gpu', 'bramble.dev/camera'])
})

test('a device has the prefix of Bramble', async (t) => {
  t.same(['bramble.dev/camera', 'example.com/bramble.dev/camera', 'cpu'].filter(isDevice), ['bramble.dev/camera'])
})
