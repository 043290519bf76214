/**
 * Completion indexes as `status.completedIndexes` has them, `0,2-4,7`: in order, from low to high
 * (pkg/controller/job/indexed_job_utils.go). A list of intervals costs what its text costs, however many indexes it holds.
 */

export type IndexInterval = { readonly first: number; readonly last: number }
export type Intervals = readonly IndexInterval[]

/** The intervals of a text, without those from `completions` on. Parts that are not numbers are left out. */
export function parseIntervals(text: string, completions: number): Intervals {
  const result: IndexInterval[] = []
  for (const part of text.split(',')) {
    const [low = '', high] = part.split('-')
    const first = wholeNumber(low)
    const given = high === undefined ? first : wholeNumber(high)
    if (first === undefined || given === undefined) continue
    if (first >= completions) break
    const last = Math.min(given, completions - 1)
    const previous = result.at(-1)
    if (previous !== undefined && previous.last === first - 1) {
      result[result.length - 1] = { first: previous.first, last }
    } else result.push({ first, last })
  }
  return result
}

/** Two indexes in a row have no hyphen: `1,2`, but `1-3`. */
export function formatIntervals(intervals: Intervals): string {
  return intervals
    .map(({ first, last }) => (last === first ? `${first}` : `${first}${last === first + 1 ? ',' : '-'}${last}`))
    .join()
}

export function mergeIntervals(one: Intervals, other: Intervals): Intervals {
  const result: IndexInterval[] = []
  let [at, from] = [0, 0]
  while (at < one.length || from < other.length) {
    const [left, right] = [one[at], other[from]]
    const takesLeft = left !== undefined && (right === undefined || left.first < right.first)
    const next = takesLeft ? left : right
    if (takesLeft) at++
    else from++
    if (next === undefined) continue
    const previous = result.at(-1)
    if (previous === undefined || next.first > previous.last + 1) result.push(next)
    else if (previous.last < next.last) result[result.length - 1] = { first: previous.first, last: next.last }
  }
  return result
}

/** In any order, also repeated. */
export function intervalsOf(indexes: Iterable<number>): Intervals {
  const result: IndexInterval[] = []
  let current: IndexInterval | undefined
  // Numbers of a typed array are sorted without a function for each comparison.
  for (const index of Float64Array.from(indexes).sort()) {
    if (current !== undefined && index <= current.last + 1) current = { first: current.first, last: index }
    else {
      if (current !== undefined) result.push(current)
      current = { first: index, last: index }
    }
  }
  if (current !== undefined) result.push(current)
  return result
}

/** How many indexes these are. */
export function countIndexes(intervals: Intervals): number {
  return intervals.reduce((sum, { first, last }) => sum + last - first + 1, 0)
}

export function hasIndex(intervals: Intervals, index: number): boolean {
  let [low, high] = [0, intervals.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((intervals[middle]?.last ?? 0) >= index) high = middle
    else low = middle + 1
  }
  const found = intervals[low]
  return found !== undefined && found.first <= index
}

/** How many indexes are in both. */
export function countCommon(one: Intervals, other: Intervals): number {
  let [at, from, common] = [0, 0, 0]
  for (;;) {
    const [left, right] = [one[at], other[from]]
    if (left === undefined || right === undefined) return common
    common += Math.max(0, Math.min(left.last, right.last) - Math.max(left.first, right.first) + 1)
    if (left.last <= right.last) at++
    if (right.last <= left.last) from++
  }
}

/** At most `count` of the indexes below `completions` that are in none of the intervals, the lowest first. */
export function firstOthers(intervals: Intervals, count: number, completions: number): readonly number[] {
  const result: number[] = []
  let candidate = 0
  const takeBelow = (end: number) => {
    for (; candidate < end && result.length < count; candidate++) result.push(candidate)
  }
  for (const { first, last } of intervals) {
    takeBelow(Math.min(first, completions))
    if (result.length === count) return result
    candidate = Math.max(candidate, last + 1)
  }
  takeBelow(completions)
  return result
}

export type CheckedIndexes = { readonly total: number } | { readonly problem: string }

/** How many indexes a text holds, or what is wrong with it (pkg/apis/batch/validation/validation.go, validateIndexesFormat). */
export function checkIndexes(text: string, completions: number): CheckedIndexes {
  if (text === '') return { total: 0 }
  let total = 0
  let previous: number | undefined
  for (const part of text.split(',')) {
    const interval = checkInterval(part, completions)
    if ('problem' in interval) return interval
    if (previous !== undefined && previous >= interval.first) {
      return { problem: `non-increasing order, previous: ${previous}, current: ${interval.first}` }
    }
    total += interval.last - interval.first + 1
    previous = interval.last
  }
  return { total }
}

/** The sentence about an index that is in both texts; undefined when there is none (validateFailedIndexesNotOverlapCompleted). */
export function overlapProblem(completed: string, failed: string, completions: number): string | undefined {
  const intervals = (text: string) =>
    text.split(',').flatMap((part) => {
      const interval = checkInterval(part, completions)
      return 'problem' in interval ? [] : [interval]
    })
  const [ones, others] = [intervals(completed), intervals(failed)]
  let [at, from] = [0, 0]
  for (;;) {
    const [one, other] = [ones[at], others[from]]
    if (one === undefined || other === undefined) return undefined
    if (one.first <= other.last && other.first <= one.last) {
      return `failedIndexes and completedIndexes overlap at index: ${Math.max(one.first, other.first)}`
    }
    if (one.first <= other.first) at++
    else from++
  }
}

function checkInterval(part: string, completions: number): IndexInterval | { readonly problem: string } {
  const limits = part.split('-')
  const [low = '', high] = limits
  if (limits.length > 2) {
    const fragment = JSON.stringify(part)
    const rule = "an index interval can have at most two parts separated by '-'"
    return { problem: `the fragment ${fragment} violates the requirement that ${rule}` }
  }
  const first = wholeNumber(low)
  if (first === undefined) return { problem: `cannot convert string to integer for index: ${JSON.stringify(low)}` }
  if (first >= completions) return { problem: `too large index: ${JSON.stringify(low)}` }
  if (high === undefined) return { first, last: first }
  const last = wholeNumber(high)
  if (last === undefined) return { problem: `cannot convert string to integer for index: ${JSON.stringify(high)}` }
  if (last >= completions) return { problem: `too large index: ${JSON.stringify(high)}` }
  if (first >= last) return { problem: `non-increasing order, previous: ${first}, current: ${last}` }
  return { first, last }
}

/** As strconv.Atoi reads it, without a minus, which separates. */
function wholeNumber(text: string): number | undefined {
  if (!/^\+?\d{1,18}$/.test(text)) return undefined
  return Number(text)
}
