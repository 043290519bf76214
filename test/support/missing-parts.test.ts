import { test } from 'tap'
import { skipVariable, skipWithout } from './missing-parts.ts'

test('a missing part fails the test, naming the part, how to install it and how to skip', async (t) => {
  t.equal(skipWithout('docker', true, ''), false)
  t.throws(() => skipWithout('docker', false, ''), {
    message: /needs docker, .*scripts\/test\.sh .*docker\.io.* BRAMBLE_TEST_SKIP_MISSING=docker/,
  })
  t.throws(() => skipWithout('docker', false, 'kubectl'), { message: /needs docker/ })
})

test('a part that the developer opted out of skips the test', async (t) => {
  t.match(skipWithout('docker', false, 'kubectl, docker'), /docker is missing/)
  t.equal(skipWithout('docker', true, 'docker'), false, 'what is there is used')
  t.throws(() => skipWithout('docker', true, 'dokcer'), {
    message: new RegExp(`${skipVariable}: there is no part dokcer`),
  })
})
