/** Deadlines of tests on a machine that is slower by a factor, as an emulated one is. */

/** How many times as long to wait as on real hardware: `BRAMBLE_TEST_PATIENCE`, else 1. */
export const patience = Math.max(1, Number(process.env['BRAMBLE_TEST_PATIENCE'] ?? 1) || 1)
