import type { Test } from 'tap'

/**
 * A folder of the test's own with `content`, as tap's `t.testdir()` makes it; gives its path.
 *
 * It is removed after all functions of `t.teardown()`, also those that are added later, so that what writes into it has ended. With
 * `t.testdir()` as the first call of a test it would go before them, and a file that appears meanwhile keeps them from being run.
 */
export function testFolder(t: Test, content: Parameters<Test['testdir']>[0] = {}): string {
  t.teardown(() => undefined)
  return t.testdir(content)
}
