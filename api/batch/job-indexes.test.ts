import { test } from 'tap'
import {
  checkIndexes,
  countCommon,
  countIndexes,
  firstOthers,
  formatIntervals,
  hasIndex,
  intervalsOf,
  mergeIntervals,
  overlapProblem,
  parseIntervals,
} from './job-indexes.ts'

test('a text of indexes is read as intervals, and written as it was', async (t) => {
  t.same(parseIntervals('0,2-4,7', 10), [
    { first: 0, last: 0 },
    { first: 2, last: 4 },
    { first: 7, last: 7 },
  ])
  t.equal(formatIntervals(parseIntervals('0,2-4,7,8', 10)), '0,2-4,7,8')
  t.same(parseIntervals('', 10), [])
  t.equal(formatIntervals([]), '')
})

test('intervals that touch become one when they are read', async (t) => {
  t.same(parseIntervals('1,2,3-5', 10), [{ first: 1, last: 5 }])
})

test('indexes from the number of completions on are left out: the Job was scaled down', async (t) => {
  t.same(parseIntervals('1-5,7', 4), [{ first: 1, last: 3 }])
  t.same(parseIntervals('5', 5), [])
})

test('parts that are not numbers are left out', async (t) => {
  t.same(parseIntervals('a,1,2-x', 10), [{ first: 1, last: 1 }])
  t.same(parseIntervals('x-3,1x,x1,12', 20), [{ first: 12, last: 12 }])
})

test('two lists are merged in order, whichever has the lower indexes', async (t) => {
  const merged = (one: string, other: string) =>
    formatIntervals(mergeIntervals(parseIntervals(one, 99), parseIntervals(other, 99)))
  t.equal(merged('1,3', '2'), '1-3')
  t.equal(merged('2', '1,3'), '1-3')
  t.equal(merged('1-9', '3-4'), '1-9')
  t.equal(merged('1-4', '3-8'), '1-8')
  t.equal(merged('', '5'), '5')
  t.equal(formatIntervals(intervalsOf([5, 1, 2, 1, 0])), '0-2,5')
})

test('indexes are counted and found without listing them', async (t) => {
  const intervals = parseIntervals('0,2-4,7', 10)
  t.equal(countIndexes(intervals), 5)
  t.same(
    [0, 1, 2, 3, 4, 5, 6, 7, 8].filter((index) => hasIndex(intervals, index)),
    [0, 2, 3, 4, 7],
  )
  t.equal(countCommon(intervals, parseIntervals('1-2,4-7', 10)), 3)
  t.equal(countCommon(intervals, []), 0)
  t.equal(countCommon([], intervals), 0)
  t.equal(countCommon(parseIntervals('2', 10), intervals), 1)
})

test('the first indexes that are missing are the lowest ones, and no more than wanted', async (t) => {
  const intervals = parseIntervals('0,2-4,7', 10)
  t.same(firstOthers(intervals, 3, 10), [1, 5, 6])
  t.same(firstOthers(intervals, 99, 10), [1, 5, 6, 8, 9])
  t.same(firstOthers(intervals, 0, 10), [])
  t.same(firstOthers([], 2, 1), [0])
  t.same(firstOthers(parseIntervals('5', 10), 2, 10), [0, 1])
  t.same(firstOthers(parseIntervals('0-9', 10), 5, 10), [])
})

test('a text that a client wrote is judged part by part, in the words of Kubernetes', async (t) => {
  t.same(checkIndexes('0,2-4', 5), { total: 4 })
  t.same(checkIndexes('', 5), { total: 0 })
  const problem = (text: string) => checkIndexes(text, 5)
  t.same(problem('5'), { problem: 'too large index: "5"' })
  t.same(problem('1-5'), { problem: 'too large index: "5"' })
  t.same(problem('x'), { problem: 'cannot convert string to integer for index: "x"' })
  t.same(problem('1-'), { problem: 'cannot convert string to integer for index: ""' })
  t.same(problem('3,3'), { problem: 'non-increasing order, previous: 3, current: 3' })
  t.same(problem('3-3'), { problem: 'non-increasing order, previous: 3, current: 3' })
  const rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
  t.same(problem('1-2-3'), { problem: `the fragment "1-2-3" ${rule}` })
})

test('an index cannot have succeeded and failed', async (t) => {
  t.equal(overlapProblem('0-2', '3-4', 5), undefined)
  t.equal(overlapProblem('0-2', '2', 5), 'failedIndexes and completedIndexes overlap at index: 2')
  t.equal(overlapProblem('4', '0,2-4', 5), 'failedIndexes and completedIndexes overlap at index: 4')
  t.equal(overlapProblem('0,x', 'x,1', 5), undefined)
  t.equal(overlapProblem('3-4', '0-2', 5), undefined)
  t.equal(overlapProblem('0-1,3', '3', 5), 'failedIndexes and completedIndexes overlap at index: 3')
  t.equal(overlapProblem('', '0', 5), undefined)
})
