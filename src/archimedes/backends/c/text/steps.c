/* Tables of arithmetic: see backends/c/bytecode.py. */

//: arc_steps
/* Carry out steps of arithmetic on the elements of w. Each is four bytes: what is done, the number
   of the result, and those of a and b. The bits of what is done: 1 a * b (else b), 2 with the other
   sign, 4 added to a or, with 8, to the result; 16 a / b. */
static void arc_steps(double *w, const uint8_t *step, size_t count)
{
    for (; count > 0; --count) {
        const uint32_t what = step[0];
        double x = w[step[3]];
        if ((what & 17U) != 0) {
            const double a = w[step[2]];
            x = (what & 1U) != 0 ? a * x : a / x;
        }
        if ((what & 2U) != 0) {
            x = -x;
        }
        if ((what & 4U) != 0) {
            x = w[step[(what & 8U) != 0 ? 1 : 2]] + x;
        }
        w[step[1]] = x;
        step += 4;
    }
}
